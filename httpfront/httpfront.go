// Package httpfront is the bridge's one HTTP port: MCP 2025-11-25 for callers in
// pure JSON, the file route and the switch beside it.
//
// A [Front] is one http.Handler and starts no goroutine of its own but for the
// bridge's own tools. The goroutine that net/http gives a request judges it in
// the order of rule H7, runs it to the end and answers: guard, session, method.
// For tools/call it waits in the host's answer; nothing is queued and there are
// no workers. Arguments and content stay slices of the bytes that came in.
//
// Order of events of one call (call.go): the start record is in the log, the
// host runs the tool, the done record is in the log, the answer goes out (L1).
package httpfront

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/a2mcp/a2mcp/audit"
	"github.com/a2mcp/a2mcp/proto"
)

// Host runs the tools. An error of CallTool that is a [Refusal] is told to the
// caller as it is; any other goes to stderr and the caller gets a fixed text.
type Host interface {
	Tools(ctx context.Context) ([]proto.Tool, error)
	CallTool(ctx context.Context, callID, name string, arguments []byte) (proto.Outcome, error)
	CancelTool(callID string) error
}

// Refusal is an error whose text is meant for the caller.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Tool is one of the bridge's own tools. It hides a host tool of the same name
// (M10).
type Tool struct {
	Name        string
	Description string
	InputSchema []byte // raw JSON
	// Run returns the text of the result. ctx ends when the call is cancelled.
	Run func(ctx context.Context, callID, sid string, arguments []byte) (text string, isError bool)
}

// FileRoute answers everything under /xfer. Opens reports whether a raw path
// carries the secret of a browser link, which is judged in place of the bearer
// (X10).
type FileRoute interface {
	http.Handler
	Opens(rawPath string) bool
}

// Options of a Front. The functions are asked at every request, so that a
// changed configuration counts at the next one.
type Options struct {
	Host    Host
	Own     []Tool
	Files   FileRoute
	Audit   *audit.Log
	Log     *slog.Logger
	Version string // serverInfo.version

	Token         func() string
	AllowOrigin   func(origin string) bool // beyond loopback, which is always allowed
	MaxBody       func() int64             // bytes
	AuditRequired func() bool              // no record, no call (L5)

	// SetInference switches the host's own model requests; ErrNoSwitch says that it
	// cannot, any other error's text is the reason verbatim (D2).
	SetInference func(ctx context.Context, enabled bool) (Inference, error)

	// Refused is told of a call of a host tool that never ran, and so has no card on
	// the host's screen (M9).
	Refused func(name, why string)
	// Redact takes secrets out of what the bridge itself answers (A5).
	Redact func(text string) string
	// Remember leaves what [Front.Sessions] returns where a crash does not lose it
	// (S5). It is called whenever that has changed, before the answer that makes it
	// known.
	Remember func(ctx context.Context)
	// SessionTTL is how long a session may idle. Default: 24 h (S3).
	SessionTTL time.Duration
}

// Front is the handler. It outlives the listener: sessions and calls survive a
// change of port.
type Front struct {
	opt      Options
	sessions *sessions
	calls    calls
	refused  atomic.Int64 // unauthorized attempts (A4)

	background atomic.Int64 // calls that went to the background (M14)
}

// New makes a Front. All functions of opt have to be set.
func New(opt Options) *Front {
	if opt.SessionTTL == 0 {
		opt.SessionTTL = 24 * time.Hour
	}
	if opt.Refused == nil {
		opt.Refused = func(string, string) {}
	}
	if opt.Redact == nil {
		opt.Redact = func(text string) string { return text }
	}
	return &Front{opt: opt, sessions: newSessions(opt.SessionTTL), calls: calls{byID: map[string]*call{}}}
}

// Stats is what the operator's status shows.
type Stats struct {
	Sessions     int
	Running      int   // calls at work in the host or the bridge
	Waiting      int   // calls that wait for the operator's approval (M6)
	Queued       int   // calls behind an exclusive one (M12)
	Background   int64 // calls that the host went on with by itself (M14)
	Unauthorized int64
}

// Stats counts sessions and calls.
func (f *Front) Stats() Stats {
	s := f.calls.count()
	s.Sessions = len(f.sessions.ids())
	s.Unauthorized = f.refused.Load()
	s.Background = f.background.Load()
	return s
}

// SetState notes what a call is doing in the host: one of the states of
// proto.ToolState. Unknown calls are ignored.
func (f *Front) SetState(callID, state string) { f.calls.setState(callID, state) }

// Restore makes the sessions known that a predecessor had issued (S5).
func (f *Front) Restore(ids []string) { f.sessions.restore(ids) }

// Sessions returns the ids of the live sessions, the last seen first.
func (f *Front) Sessions() []string { return f.sessions.ids() }

// EndSessions ends all sessions; calls in flight finish.
func (f *Front) EndSessions(ctx context.Context) {
	f.sessions.endAll()
	f.opt.Remember(ctx)
}

// EndCalls ends the calls in flight that began until the given moment, with an
// error that says reason. The host is asked to abort them, but not waited for.
func (f *Front) EndCalls(until time.Time, reason string) {
	f.calls.end(reason, 0, func(c *call) bool { return !c.began.After(until) })
}

// ServeHTTP judges and answers one request.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			f.recovered(w, p)
		}
	}()
	if err := f.serve(w, r); err != nil {
		f.answerError(w, err)
	}
}

// serve is the order of judgement (H7): the first fault answers.
func (f *Front) serve(w http.ResponseWriter, r *http.Request) error {
	path := rawPath(r)
	at := routeOf(path)
	if err := f.admit(at, path, r); err != nil {
		leaveBody(w, r)
		return err
	}
	switch {
	case at == routeFiles:
		f.opt.Files.ServeHTTP(w, r)
		return nil
	case at == routeSwitch:
		return f.hostLLM(w, r)
	case r.Method == http.MethodDelete:
		return f.endSession(w, r)
	}
	return f.message(w, r)
}
