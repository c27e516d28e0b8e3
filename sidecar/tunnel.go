package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/a2mcp/a2mcp/files/child"
	"github.com/a2mcp/a2mcp/proto"
)

// Times of a tunnel (T2).
const (
	tunnelLimit = 30 * time.Second       // for a registered connection
	tunnelGrace = 2 * time.Second        // between asking cloudflared to end and killing it
	tunnelPoll  = 100 * time.Millisecond // between looks at what cloudflared says of itself
)

// tunnel is the operator's way in from outside: one cloudflared at a time, that
// leads to the bridge's own port (T1). A goroutine of its own keeps each run from
// the search for the binary to the end of the process; whoever opens or closes
// only waits for it.
type tunnel struct {
	find   func(context.Context) (string, error) // path of cloudflared
	bridge func() (address string, port int)     // where the bridge is; "" without a port
	record func(tunnelAction) error              // writes it to the audit log
	must   func() bool                           // no record, no tunnel (L5)
	tell   func(level, text string)              // to the operator, unasked
	shown  func()                                // the address has come or gone
	log    *slog.Logger
	limit  time.Duration
	after  func(time.Duration) <-chan time.Time
	args   []string // further arguments of cloudflared

	mu      sync.Mutex
	run     *tunnelRun // nil: none
	failure error      // why the last one failed; nil: it did not
}

// tunnelRun is one tunnel from the command that wanted it to its end.
type tunnelRun struct {
	bridge  string
	port    int
	stop    context.CancelFunc
	settled chan struct{} // closed when it is open or over
	over    chan struct{} // closed when the process is gone and the records are written

	// Guarded by tunnel.mu.
	url     string // once it is open
	since   time.Time
	closing bool // it has no address any more
	why     string
	err     error // why it was never open
}

var (
	errNoPort       = errors.New("the bridge has no port now; `/a2mcp` says why")
	errClosedBefore = errors.New("it was closed before it was open")
)

// open returns the address of the tunnel, once it is open. Whoever comes second
// waits with the first; fresh is for the first alone (T1).
func (t *tunnel) open(ctx context.Context) (url string, fresh bool, err error) {
	run, fresh, err := t.join(ctx)
	if err != nil {
		return "", false, err
	}
	select {
	case <-run.settled:
	case <-ctx.Done():
		return "", false, ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if run.err == nil && run.closing {
		return "", false, errClosedBefore
	}
	return run.url, fresh, run.err
}

// join returns the run there is, or begins one. One that is closing is waited
// for first.
func (t *tunnel) join(ctx context.Context) (run *tunnelRun, fresh bool, err error) {
	for {
		t.mu.Lock()
		run := t.run
		switch {
		case run == nil:
			defer t.mu.Unlock()
			// Asked under the lock: whoever gives the port up closes the tunnel after
			// that, so no run begins for a port that is gone.
			address, port := t.bridge()
			if address == "" {
				return nil, false, errNoPort
			}
			return t.beginLocked(address, port), true, nil
		case !run.closing:
			t.mu.Unlock()
			return run, false, nil
		}
		t.mu.Unlock()
		select {
		case <-run.over:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

func (t *tunnel) beginLocked(address string, port int) *tunnelRun {
	ctx, stop := context.WithCancel(context.Background())
	run := &tunnelRun{bridge: address, port: port, stop: stop, settled: make(chan struct{}), over: make(chan struct{})}
	t.run, t.failure = run, nil
	go t.keep(ctx, run)
	return run
}

// close begins the end of the tunnel, if there is one: from now on it has no
// address. The channel is closed when the process is gone; nil without a tunnel.
func (t *tunnel) close(why string) (url string, over <-chan struct{}) {
	t.mu.Lock()
	run := t.run
	if run == nil {
		t.mu.Unlock()
		return "", nil
	}
	first := !run.closing
	if first {
		run.closing, run.why = true, why
	}
	url = run.url
	t.mu.Unlock()
	if first {
		t.log.Info("tunnel closing", "port", run.port, "why", why)
		t.shown()
	}
	run.stop()
	return url, run.over
}

// public is the address of the open tunnel, without a slash at the end; "" while
// there is none.
func (t *tunnel) public() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run == nil || t.run.closing {
		return ""
	}
	return t.run.url
}

// line is the state in the operator's words (F3).
func (t *tunnel) line() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch run := t.run; {
	case run == nil && t.failure != nil:
		return "failed: " + escape(t.failure.Error())
	case run == nil:
		return "none"
	case run.closing:
		return "closing"
	case run.url == "":
		return "starting"
	default:
		return run.url + "/ since " + run.since.Local().Format(time.TimeOnly)
	}
}

// keep is the life of a run. The child is gone and the records are written when
// it is over.
func (t *tunnel) keep(ctx context.Context, run *tunnelRun) {
	defer run.stop()
	process, url, err := t.start(ctx, run)
	if err == nil {
		if err = t.nowOpen(run, url); err == nil {
			select {
			case <-ctx.Done():
			case <-process.Done():
				err = diedFault(process.Err())
			}
		}
	}
	t.mu.Lock()
	asked := run.closing // somebody wanted the end; otherwise it came by itself
	run.closing = true
	t.mu.Unlock()
	if process != nil {
		if !asked {
			t.shown()
		}
		process.Stop(tunnelGrace)
	}
	if asked {
		err = nil
	}
	t.finish(run, err)
}

// nowOpen makes the address known. Where the log is required, the record comes
// first (L5).
func (t *tunnel) nowOpen(run *tunnelRun, url string) error {
	if err := t.record(tunnelAction{Action: "start", URL: url, Port: run.port}); err != nil && t.must() {
		return errors.New("audit log not writable")
	}
	t.mu.Lock()
	run.url, run.since = url, time.Now()
	t.mu.Unlock()
	t.log.Info("tunnel open", "url", url, "port", run.port)
	t.shown()
	close(run.settled)
	return nil
}

// finish writes the last record and makes room for another run.
func (t *tunnel) finish(run *tunnelRun, err error) {
	last := tunnelAction{Action: "stop", URL: run.url, Port: run.port, Why: run.why}
	wasOpen := run.url != ""
	failed := err
	if !wasOpen {
		last.Action, last.Why = "start", ""
		if failed == nil {
			failed = errClosedBefore
		}
	}
	if failed != nil {
		last.Error = evidence(failed)
	}
	_ = t.record(last) // counted and told by the log itself
	if err == nil {
		t.log.Info("tunnel closed", "port", run.port)
	} else {
		t.log.Error("tunnel failed", "reason", err)
		if wasOpen {
			t.tell(proto.LevelError, "the tunnel is gone: "+escape(err.Error())+"; `/a2mcp tunnel` opens another")
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.run, t.failure = nil, err
	if !wasOpen {
		run.err = failed
		close(run.settled)
	}
	close(run.over)
}

// start finds cloudflared and runs it until its connection is registered. A
// network that lets no QUIC through gets a second try over HTTP/2 (T2).
func (t *tunnel) start(ctx context.Context, run *tunnelRun) (*child.Process, string, error) {
	t.log.Info("tunnel starting", "port", run.port)
	path, err := t.find(ctx)
	if err != nil {
		return nil, "", fmt.Errorf("finding cloudflared: %w", err)
	}
	config, remove, err := emptyConfig()
	if err != nil {
		return nil, "", err
	}
	defer remove() // it was read at the start
	for _, protocol := range []string{"auto", "http2"} {
		var process *child.Process
		var url string
		process, url, err = t.attempt(ctx, append([]string{
			"tunnel", "--config", config, "--no-autoupdate", "--metrics", "127.0.0.1:0", "--grace-period", "1s",
			"--protocol", protocol, "--url", run.bridge}, t.args...), path)
		if !errors.Is(err, errNoConnection) {
			return process, url, err
		}
		t.log.Warn("tunnel not connected", "protocol", protocol, "after", t.limit)
	}
	return nil, "", err
}
