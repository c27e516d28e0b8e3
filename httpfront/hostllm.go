package httpfront

import (
	"net/http"

	"github.com/a2mcp/a2mcp/proto"
)

// hostLLM answers POST /host-llm. The body is judged before the action; this
// host has no switch, so the action is 501 (D2).
func (f *Front) hostLLM(w http.ResponseWriter, r *http.Request) error {
	body, err := f.readBody(w, r)
	if err != nil || body == nil {
		return err
	}
	enabled := ""
	if proto.Valid(body) {
		enabled = string(proto.Member(body, "enabled"))
	}
	if enabled != "true" && enabled != "false" {
		return switchError(w, http.StatusBadRequest, `send {"enabled": true} or {"enabled": false}`)
	}
	return switchError(w, http.StatusNotImplemented, "this host has no switch for its own model requests")
}

// switchError writes an error in the shape of this route, which is not JSON-RPC.
func switchError(w http.ResponseWriter, status int, text string) error {
	writeJSON(w, status, proto.Encode(struct {
		Error string `json:"error"`
	}{text}))
	return nil
}
