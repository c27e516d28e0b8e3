// Package refhost is a small agent host without an agent: it plays the host's
// half of the stdio protocol (proto/HOST.md) with a few real tools of this
// machine. `a2mcp demo` runs it, the tests run it, and whoever writes an adapter
// for another host can read it as an example.
//
// A [Host] starts the sidecar, says hello, reports one main session and answers
// what it is asked; a sidecar that dies is started again with what it had left
// behind. Each call is looked up by its exact name and validated, and runs in a
// goroutine of its own: queued if it is exclusive, approved if the operator wants to be
// asked, run, answered. A call that is cancelled answers within a second,
// whatever its tool is doing.
package refhost

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/proto"
)

// Options of a Host.
type Options struct {
	Command  []string // argv that starts the sidecar
	Env      []string // its environment; nil is this process's
	AgentDir string   // where its configuration and log live
	Home     string   // what ~ means
	Cwd      string   // what relative paths start from; also the tools' folder
	Version  string   // of this host

	TestTools bool     // offer also the tools that only tests want
	Features  []string // what to announce; nil is all there is

	// Approve is asked before a tool that writes or runs anything; nil asks nobody.
	// It returns when the operator has answered or ctx ends: nil allows the call, of
	// an error the caller reads the text.
	Approve func(ctx context.Context, name string, arguments []byte) error
	// Notice shows the operator what the bridge has to say.
	Notice func(level, text string)
	// Called reports what happens to calls, host tools and the bridge's own.
	Called func(Event)
	// Stderr takes the sidecar's lines; nil is this process's standard error.
	Stderr func(line string)
	Log    *slog.Logger
}

// Event is a step of a call's life.
type Event struct {
	CallID    string
	Name      string
	Arguments []byte // raw JSON, at the start
	State     string // started, a state of proto.ToolState, done, failed or cancelled
	Took      time.Duration
}

// Host is a running host. Its methods may be used from any goroutine.
type Host struct {
	opt   Options
	tools []tool
	calls calls

	exclusive chan struct{} // holds one token: whoever has it runs (M12)

	mu     sync.Mutex
	conn   *hostrpc.Conn // nil: no sidecar
	pid    int
	url    string
	reason string          // why the sidecar does not serve
	mains  map[string]bool // live main sessions
	memory []byte          // what the sidecar asked to remember, raw
	up     chan struct{}   // closed while a sidecar serves, or has said why it does not
}

// Main is the id of the first main session.
const Main = "main"

// ErrNoSidecar is returned while no sidecar is up.
var ErrNoSidecar = errors.New("the sidecar is not running")

// allFeatures is what this host can do.
func allFeatures() []string {
	return []string{
		proto.FeatureCancel, proto.FeatureToolState, proto.FeatureProgress,
		proto.FeatureExclusive, proto.FeatureCards, proto.FeatureRemember,
	}
}

// New makes a Host with one main session.
func New(opt Options) *Host {
	if opt.Features == nil {
		opt.Features = allFeatures()
	}
	if opt.Notice == nil {
		opt.Notice = func(string, string) {}
	}
	if opt.Called == nil {
		opt.Called = func(Event) {}
	}
	if opt.Stderr == nil {
		opt.Stderr = func(line string) { _, _ = os.Stderr.WriteString(line + "\n") }
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	h := &Host{opt: opt, exclusive: make(chan struct{}, 1), mains: map[string]bool{Main: true}, up: make(chan struct{})}
	h.calls.byID = map[string]*running{}
	h.tools = realTools()
	if opt.TestTools {
		h.tools = append(h.tools, testTools()...)
	}
	return h
}
