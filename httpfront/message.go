package httpfront

import (
	"net/http"
	"strings"

	"github.com/a2mcp/a2mcp/proto"
)

// message is one JSON-RPC request or notification (H2).
type message struct {
	id     []byte // raw, echoed byte for byte; nil if absent or null (H9)
	method string
	params []byte // raw, nil if absent
}

// message reads a POST and carries it out: steps 5 to 9 of H7.
func (f *Front) message(w http.ResponseWriter, r *http.Request) error {
	body, err := f.readBody(w, r)
	if err != nil || body == nil {
		return err
	}
	msg, err := parse(body)
	if err != nil {
		return err
	}
	if msg.method == proto.MethodInitialize {
		return f.initialize(w, r, msg)
	}
	sid, err := f.session(r, msg.id)
	if err != nil {
		return err
	}
	if err := checkVersion(r, msg.id); err != nil {
		return err
	}
	if strings.HasPrefix(msg.method, proto.NotificationsRoot) {
		if msg.method == proto.MethodCancelled {
			f.cancel(sid, msg.params)
		}
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	switch msg.method {
	case proto.MethodPing:
		respond(w, http.StatusOK, msg.id, []byte(`"result":{}`))
		return nil
	case proto.MethodToolsList:
		return f.listTools(w, r, msg.id)
	case proto.MethodToolsCall:
		f.callTool(w, r, sid, msg)
		return nil
	}
	respond(w, http.StatusOK, msg.id, []byte(`"error":{"code":-32601,"message":"method not found"}`))
	return nil
}

// parse takes a body apart without copying. Field names are case-sensitive and
// of two equal ones the last counts (H8, H12).
func parse(body []byte) (message, error) {
	if !proto.Valid(body) {
		return message{}, errParse
	}
	var msg message
	var version, method []byte
	badID := false
	for key, value := range proto.Members(body) {
		switch string(key) {
		case "jsonrpc":
			version = value
		case "method":
			method = value
		case "params":
			msg.params = value
		case "id":
			msg.id, badID = idOf(value)
		}
	}
	name, ok := proto.Text(method)
	if text, _ := proto.Text(version); text != proto.JSONRPC || !ok || badID {
		return message{}, errInvalidRequest(msg.id)
	}
	msg.method = name
	return msg, nil
}

// idOf returns the raw id, or nil with bad set for what can be none.
func idOf(value []byte) (id []byte, bad bool) {
	switch c := value[0]; {
	case c == '"', c == '-', '0' <= c && c <= '9':
		return value, false
	case c == 'n':
		return nil, false
	}
	return nil, true
}

// checkVersion refuses a revision that was never published (H7, step 7a). An
// empty header is an absent one.
func checkVersion(r *http.Request, id []byte) error {
	for _, v := range r.Header.Values(proto.VersionHeader) {
		if v != "" && !proto.PublishedVersion(v) {
			return &httpError{status: http.StatusBadRequest, code: proto.CodeServer, text: "unsupported protocol version", id: id}
		}
	}
	return nil
}
