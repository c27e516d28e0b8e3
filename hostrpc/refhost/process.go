package refhost

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/proto"
)

// How a sidecar is started again and ended (HOST.md).
const (
	firstPause  = 200 * time.Millisecond
	longestWait = 5 * time.Second
	steadyAfter = 60 * time.Second // a sidecar that lived so long resets the pause
	maxFailures = 5                // deaths in a row before an answer to hello
	helloLimit  = 5 * time.Second
	lastWait    = 6 * time.Second // for a sidecar to end by itself; it has 5 s
)

// errGivenUp is why Run ends by itself.
var errGivenUp = errors.New("the sidecar died five times before it answered; see its lines above")

// Run keeps a sidecar running until ctx ends. Then the main session is shut down
// and the sidecar's input closed, which ends it.
func (h *Host) Run(ctx context.Context) error {
	pause, failures := firstPause, 0
	for {
		began := time.Now()
		answered, err := h.runOnce(ctx)
		var skew *hostrpc.Error
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &skew) && skew.Code == proto.CodeProtocolSkew:
			return err // starting it again changes nothing
		case answered:
			failures = 0
		default:
			if failures++; failures == maxFailures {
				return errGivenUp
			}
		}
		if time.Since(began) > steadyAfter {
			pause = firstPause
		}
		h.opt.Notice(proto.LevelWarning, fmt.Sprintf("the sidecar ended (%v); starting it again", err))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, longestWait)
	}
}

// runOnce starts one sidecar and waits for its end. answered says that hello was
// answered.
func (h *Host) runOnce(ctx context.Context) (answered bool, err error) {
	cmd := exec.Command(h.opt.Command[0], h.opt.Command[1:]...)
	cmd.Env = h.opt.Env
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return false, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return false, err
	}
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("starting the sidecar: %w", err)
	}
	h.mu.Lock()
	h.pid = cmd.Process.Pid
	h.mu.Unlock()
	silent := make(chan struct{}) // closed at the end of its standard error
	go func() {
		defer close(silent)
		for lines := bufio.NewReader(stderr); ; {
			line, _, err := lines.ReadLine() // one that is very long comes in pieces
			if err != nil {
				return
			}
			h.opt.Stderr(string(line))
		}
	}()
	answered, err = h.Serve(ctx, stdout, stdin)
	_ = stdin.Close() // the end of input is the sidecar's end
	kill := time.AfterFunc(lastWait, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	<-silent
	if waitErr := cmd.Wait(); err == nil {
		err = waitErr
	}
	return answered, err
}

// Serve plays the host over a pair of streams until ctx ends or the sidecar does.
// Run uses it with a process; tests use it with a sidecar in memory.
func (h *Host) Serve(ctx context.Context, in io.Reader, out io.WriteCloser) (answered bool, err error) {
	conn := hostrpc.New(in, out, h.handle, hostrpc.Options{Side: "h", Log: h.opt.Log})
	ended := make(chan error, 1)
	go func() { ended <- conn.Run(context.WithoutCancel(ctx)) }()
	if answered, err = h.greet(ctx, conn); err == nil {
		select {
		case err = <-ended:
			h.detachConn()
			return answered, err
		case <-ctx.Done():
			h.farewell(context.WithoutCancel(ctx))
		}
	}
	h.detachConn()
	_ = out.Close()
	if connErr := <-ended; err == nil {
		err = connErr
	}
	return answered, err
}

// greet says hello and starts every live main session.
func (h *Host) greet(ctx context.Context, conn *hostrpc.Conn) (answered bool, err error) {
	h.mu.Lock()
	memory := h.memory
	var mains []string
	for id := range h.mains {
		mains = append(mains, id)
	}
	h.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, helloLimit)
	defer cancel()
	var hello proto.HelloResult
	err = askOn(limited, conn, proto.HostHello, proto.Hello{
		Protocol: proto.HostProtocol, AgentDir: h.opt.AgentDir, Home: h.opt.Home, Cwd: h.opt.Cwd,
		Host:     proto.HostInfo{Name: "refhost", Version: h.opt.Version, Mode: "demo", PID: os.Getpid()},
		Features: h.opt.Features, Memory: memory,
	}, &hello)
	if err != nil {
		return false, fmt.Errorf("hello: %w", err)
	}
	h.mu.Lock()
	h.conn = conn
	h.mu.Unlock()
	for _, id := range mains {
		res, err := h.startSession(ctx, id, true)
		if err != nil {
			return true, fmt.Errorf("session_start: %w", err)
		}
		h.mu.Lock()
		h.reason = res.Reason
		if res.URL != nil {
			h.url = *res.URL
		}
		if res.URL != nil || res.Reason != "" {
			h.markUpLocked()
		}
		h.mu.Unlock()
	}
	return true, nil
}

// farewell ends the main sessions, as a host that exits does.
func (h *Host) farewell(ctx context.Context) {
	h.mu.Lock()
	var mains []string
	for id := range h.mains {
		mains = append(mains, id)
	}
	h.mu.Unlock()
	for _, id := range mains {
		_, _ = h.EndSession(ctx, id, true) // what it answers changes nothing any more
	}
}

func (h *Host) detachConn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conn = nil
	h.pid = 0
	select {
	case <-h.up:
		h.up = make(chan struct{})
	default:
	}
}

func (h *Host) markUpLocked() {
	select {
	case <-h.up:
	default:
		close(h.up)
	}
}

// URL waits until the bridge serves and returns its address, or the reason why it
// does not.
func (h *Host) URL(ctx context.Context) (string, error) {
	h.mu.Lock()
	up := h.up
	h.mu.Unlock()
	select {
	case <-up:
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.reason != "" {
			return "", fmt.Errorf("not serving: %s", h.reason)
		}
		return h.url, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// SidecarPID is the process id of the running sidecar, 0 if there is none.
func (h *Host) SidecarPID() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pid
}
