package httpfront

import (
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/a2mcp/a2mcp/audit"
	"github.com/a2mcp/a2mcp/proto"
)

// Inference is the state of the host's own model requests after a switch (D1).
type Inference struct {
	Enabled  bool  `json:"enabled"`
	Denied   int64 `json:"denied"`   // requests refused since the host's process began
	Degraded bool  `json:"degraded"` // denied, but not on every way (D10)

	Reason string `json:"-"` // why it is degraded, for the log
}

// ErrNoSwitch is returned by Options.SetInference of a host that cannot (D2).
var ErrNoSwitch = errors.New("this host has no switch for its own model requests")

// hostLLM answers POST /host-llm: the body is judged, then the host acts, then the
// record is written (D2, L7). It is no call: no session is needed.
func (f *Front) hostLLM(w http.ResponseWriter, r *http.Request) error {
	body, err := f.readBody(w, r)
	if err != nil || body == nil {
		return err
	}
	var wanted string
	if proto.Valid(body) {
		wanted = string(proto.Member(body, "enabled"))
	}
	if wanted != "true" && wanted != "false" {
		return switchError(w, http.StatusBadRequest, `send {"enabled": true} or {"enabled": false}`)
	}
	began := time.Now()
	state, err := f.opt.SetInference(r.Context(), wanted == "true")
	reason := state.Reason
	if err != nil {
		reason = err.Error()
	}
	f.RecordInference(f.sessions.issued(r.Header.Get(proto.SessionHeader)), wanted == "true", time.Since(began), reason)
	switch {
	case errors.Is(err, ErrNoSwitch):
		return switchError(w, http.StatusNotImplemented, err.Error())
	case err != nil:
		return switchError(w, http.StatusInternalServerError, err.Error())
	}
	writeJSON(w, http.StatusOK, proto.Encode(state))
	return nil
}

// RecordInference writes what was asked of the switch, and why it was not done or
// not whole. sid is a session of the bridge, "" for none.
func (f *Front) RecordInference(sid string, enabled bool, took time.Duration, reason string) {
	args := struct {
		Enabled bool   `json:"enabled"`
		Error   string `json:"error,omitempty"`
	}{enabled, reason}
	_ = f.opt.Audit.Write(audit.Record{ // the log counts and tells what it loses
		Time: time.Now(), ID: uuid.NewString(), SID: sid, Phase: audit.Done, Tool: "host_llm", IsError: reason != "", Took: took, Args: proto.Encode(args),
	})
}

// switchError writes an error in the shape of this route, which is not JSON-RPC.
func switchError(w http.ResponseWriter, status int, text string) error {
	writeJSON(w, status, proto.Encode(struct {
		Error string `json:"error"`
	}{text}))
	return nil
}
