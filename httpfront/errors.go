package httpfront

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/a2mcp/a2mcp/proto"
)

// httpError is a refusal: what the caller sees, and the cause that only stderr
// sees.
type httpError struct {
	status int
	code   int    // JSON-RPC code
	text   string // public; empty means an empty body
	id     []byte // raw id of the message, nil if none could be read
	allow  string // header Allow of a 405 (RFC 9110, section 15.5.6)
	cause  error
}

func (e *httpError) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %v", e.text, e.cause)
	}
	return e.text
}

// The rows of the error table (H8) that carry no id.
var (
	errUnauthorized    = &httpError{status: http.StatusUnauthorized, code: proto.CodeServer, text: "unauthorized"}
	errForbiddenOrigin = &httpError{status: http.StatusForbidden, code: proto.CodeServer, text: "forbidden origin"}
	errParse           = &httpError{status: http.StatusBadRequest, code: proto.CodeParse, text: "parse error"}
	errBodyTooLarge    = &httpError{status: http.StatusRequestEntityTooLarge, code: proto.CodeInvalidRequest, text: "request body too large"}
)

func errInvalidRequest(id []byte) error {
	return &httpError{status: http.StatusBadRequest, code: proto.CodeInvalidRequest, text: "invalid request", id: id}
}

func errInternal(id []byte, cause error) error {
	return &httpError{status: http.StatusInternalServerError, code: proto.CodeInternal, text: "internal error", id: id, cause: cause}
}

// answerError is the one writer of refusals.
func (f *Front) answerError(w http.ResponseWriter, err error) {
	var refusal *httpError
	if !errors.As(err, &refusal) {
		errors.As(errInternal(nil, err), &refusal)
	}
	if refusal.cause != nil {
		f.opt.Log.Error("internal error", "cause", refusal.cause)
	}
	if refusal.allow != "" {
		w.Header().Set("Allow", refusal.allow)
	}
	if refusal.text == "" {
		w.WriteHeader(refusal.status)
		return
	}
	fault := append([]byte(`"error":`), proto.Encode(struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}{refusal.code, refusal.text})...)
	respond(w, refusal.status, refusal.id, fault)
}

// recovered turns a panic into a 500 (H7, step 10). A handler that aborts on
// purpose is left alone.
func (f *Front) recovered(w http.ResponseWriter, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	f.opt.Log.Debug("stack of the panic", "stack", string(debug.Stack()))
	f.answerError(w, errInternal(nil, fmt.Errorf("panic: %v", p)))
}
