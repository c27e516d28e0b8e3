// Package sidecar is the bridge itself: it owns the port, the sessions, the
// configuration and the log, and joins the host's pipe with the callers' HTTP.
// Everything meets here and only here.
//
// Run owns every goroutine that lives long: the host's connection, the lane of
// session events, the watches on the host's health, its process and the
// configuration. The first of them to end stops the others; the connection ends
// with the host's end of input, which is how a bridge is meant to end (P6).
//
// Order of events: hello opens configuration and log; the first session_start
// binds the port and announces it; later ones find it bound; the session_shutdown
// after which the host has no main session gives it up again (P1, P3, P4). Events
// of sessions run one at a time in the order they came. Commands, calls and HTTP
// requests run beside them.
package sidecar

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/a2mcp/a2mcp/audit"
	"github.com/a2mcp/a2mcp/files"
	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/httpfront"
	"github.com/a2mcp/a2mcp/proto"
)

// ErrNoHost is returned by Run when the input ended before a host said hello.
var ErrNoHost = errors.New("no host spoke")

// Options of Run. The functions have working defaults; tests replace them.
type Options struct {
	In      io.Reader // the host's lines
	Out     io.Writer // lines to the host
	Stderr  io.Writer
	Debug   bool // stderr also gets what only a developer wants
	Version string

	Getenv     func(string) string                                 // A2MCP_CONFIG, A2MCP_AUDIT
	Listen     func(network, address string) (net.Listener, error) // net.Listen
	HostAlive  func(pid int) bool                                  // whether that process is there
	Watch      func(ctx context.Context, path string, changed func()) error
	SessionTTL time.Duration

	Cloudflared func(ctx context.Context) (path string, err error) // finds the binary
}

// sidecar is one run of the bridge.
type sidecar struct {
	opt     Options
	log     *slog.Logger
	secrets *audit.Secrets
	host    *link
	lane    *lane

	hello  atomic.Pointer[proto.Hello] // the last one; nil before the first
	mute   atomic.Bool                 // the host speaks another protocol: silent until the end
	paths  paths                       // set by the first hello
	cfg    atomic.Pointer[Config]
	audit  *audit.Log       // set by the first hello
	share  *files.Share     // set by the first hello
	tunnel *tunnel          // set by the first hello
	front  *httpfront.Front // set by the first hello
	ready  chan struct{}    // closed by the first hello

	mu        sync.Mutex
	server    *server   // bound port; nil: none
	older     []*server // of ports before it that an edit gave up; calls in progress go on
	lastPort  int       // to be bound again if it can be (S5)
	configErr error     // why there is no configuration
	refusal   error     // why the last try to serve failed
	draining  sync.WaitGroup

	editing     sync.Mutex               // from reading or writing the configuration until it is in force; before mu
	retired     atomic.Pointer[[]string] // SHA-256 of tokens that were rotated away; stored under editing
	editFailed  bool                     // the last edit was wrong, and told; guarded by editing
	odd         []string                 // what is odd about the configuration; guarded by editing
	oddTold     bool                     // the operator knows; guarded by editing
	remembering sync.Mutex               // memory leaves in the order it was true

	refusals refusals

	switching     sync.Mutex // one llm/set at a time (D8)
	saidInference string     // guarded by switching
}

// Run serves one host until its input ends or ctx does. It returns ErrNoHost if
// nothing was said before that, else nil or what broke.
func Run(ctx context.Context, opt Options) error {
	opt = opt.withDefaults()
	level := slog.LevelInfo
	if opt.Debug {
		level = slog.LevelDebug
	}
	s := &sidecar{opt: opt, secrets: &audit.Secrets{}, lane: newLane(), ready: make(chan struct{})}
	s.log = NewLog(opt.Stderr, level, s.secrets)
	if s.opt.Cloudflared == nil {
		s.opt.Cloudflared = s.findCloudflared
	}
	conn := hostrpc.New(opt.In, opt.Out, s.handle, hostrpc.Options{Side: "s", Log: s.log})
	s.host = &link{Host: hostrpc.Host{Conn: conn}, log: s.log}

	err := runAll(ctx, conn.Run, s.lane.run, s.watchHealth, s.watchProcess, s.watchConfig)
	s.end()
	if s.hello.Load() == nil {
		return ErrNoHost
	}
	return err
}

func (o Options) withDefaults() Options {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Listen == nil {
		o.Listen = net.Listen
	}
	if o.HostAlive == nil {
		o.HostAlive = ProcessAlive
	}
	if o.Watch == nil {
		o.Watch = watchFile
	}
	return o
}

// runAll runs the parts until the first returns, stops the others and waits for
// them. The first error that is not just the stopping is returned.
func runAll(ctx context.Context, parts ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part(ctx) }()
	}
	var first error
	for range parts {
		err := <-ended
		if first == nil && !errors.Is(err, context.Canceled) {
			first = err
		}
		stop()
	}
	return first
}
