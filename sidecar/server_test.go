package sidecar

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/proto"
)

// breakable is a listener that the system takes away.
type breakable struct {
	net.Listener
	broken chan struct{}
}

func (l breakable) Accept() (net.Conn, error) {
	<-l.broken
	return nil, errors.New("the system took it away")
}

// TestBrokenListener: P1 holds for a port that broke too: the next session_start
// binds again, and announces it.
func TestBrokenListener(t *testing.T) {
	hostIn, sidecarOut := io.Pipe()
	sidecarIn, hostOut := io.Pipe()
	broken, bound := make(chan struct{}), 0
	ended := make(chan error, 1)
	dir := t.TempDir()
	go func() {
		defer sidecarOut.Close()
		ended <- Run(context.Background(), Options{In: sidecarIn, Out: sidecarOut, Stderr: io.Discard, Version: "test",
			Getenv: func(string) string { return "" },
			Listen: func(network, address string) (net.Listener, error) {
				l, err := net.Listen(network, address)
				if bound++; bound == 1 && err == nil {
					return breakable{l, broken}, nil
				}
				return l, err
			}})
	}()
	released := make(chan struct{}, 1)
	host := hostrpc.New(hostIn, hostOut, func(_ context.Context, req *hostrpc.Request) {
		switch text, _ := proto.Text(proto.Member(req.Params, "text")); {
		case req.Method == proto.SidecarHostState:
			_ = req.Reply([]byte(`{"mains":1,"llm":{}}`))
		case req.Method == proto.SidecarStatus && text == "":
			released <- struct{}{}
		}
	}, hostrpc.Options{Side: "h"})
	go func() { _ = host.Run(context.Background()) }()
	ask := func(method string, params any) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		raw, err := host.Call(ctx, method, proto.Encode(params))
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		url, _ := proto.Text(proto.Member(raw, "url"))
		return url
	}
	ask(proto.HostHello, proto.Hello{Protocol: proto.HostProtocol, AgentDir: dir, Home: dir, Cwd: dir,
		Host: proto.HostInfo{Name: "test", Version: "1", Mode: "test", PID: os.Getpid()}})
	ask(proto.HostSessionStart, proto.SessionStart{SessionID: "main", IsMain: true, Mains: 1})
	close(broken)
	select {
	case <-released:
	case <-time.After(30 * time.Second):
		t.Error("the broken port was not given up")
	}
	url := ask(proto.HostSessionStart, proto.SessionStart{SessionID: "other", IsMain: true, Mains: 2})
	address := strings.Trim(strings.TrimPrefix(url, "http://"), "/")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Errorf("nobody listens at %q: %v", url, err)
	} else {
		conn.Close()
	}
	_ = hostOut.Close()
	if err := <-ended; err != nil || bound != 2 {
		t.Errorf("bound %d times: %v", bound, err)
	}
}
