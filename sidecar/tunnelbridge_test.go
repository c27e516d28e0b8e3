//go:build unix

package sidecar

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/proto"
)

// bridge is a whole sidecar with a host that has one main session.
type bridge struct {
	t      *testing.T
	dir    string
	host   *hostrpc.Conn
	stop   context.CancelFunc // SIGTERM
	eof    func() error
	ended  chan struct{}
	local  string
	token  string
	sid    string
	mu     sync.Mutex
	mains  int
	notes  []string
	status string
}

func startBridge(t *testing.T, f *fake) *bridge {
	t.Helper()
	b := &bridge{t: t, dir: t.TempDir(), mains: 1, ended: make(chan struct{})}
	hostIn, sidecarOut := io.Pipe()
	sidecarIn, hostOut := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	b.stop, b.eof = stop, hostOut.Close
	var stderr strings.Builder
	go func() {
		defer close(b.ended)
		if err := Run(ctx, Options{In: sidecarIn, Out: sidecarOut, Stderr: &stderr, Version: "test",
			Cloudflared: f.found, Getenv: func(string) string { return "" }}); err != nil && ctx.Err() == nil {
			t.Errorf("the sidecar: %v\n%s", err, stderr.String())
		}
		sidecarOut.Close()
	}()
	b.host = hostrpc.New(hostIn, hostOut, b.answer, hostrpc.Options{Side: "h"})
	go func() { _ = b.host.Run(context.Background()) }()
	t.Cleanup(b.end)
	b.ask(proto.HostHello, proto.Hello{Protocol: proto.HostProtocol, AgentDir: b.dir, Home: b.dir, Cwd: b.dir,
		Host: proto.HostInfo{Name: "test", Version: "1", Mode: "test", PID: os.Getpid()}})
	b.session()
	b.token = b.command("token").Text
	return b
}

func (b *bridge) end() {
	_ = b.eof()
	<-b.ended
	b.stop()
}

func (b *bridge) session() {
	b.t.Helper()
	url, ok := proto.Text(proto.Member(b.ask(proto.HostSessionStart, proto.SessionStart{SessionID: "main", IsMain: true, Mains: 1}), "url"))
	if !ok {
		b.t.Fatal("no port")
	}
	b.local = url
}

func (b *bridge) answer(_ context.Context, req *hostrpc.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	text, _ := proto.Text(proto.Member(req.Params, "text"))
	switch req.Method {
	case proto.SidecarHostState:
		_ = req.Reply(fmt.Appendf(nil, `{"mains":%d,"llm":{}}`, b.mains))
	case proto.SidecarToolsList:
		_ = req.Reply([]byte(`{"tools":[],"source":"main"}`))
	case proto.SidecarToolsCall:
		_ = req.Reply([]byte(`{"outcome":"not_exposed"}`))
	case proto.SidecarNotify:
		b.notes = append(b.notes, text)
	case proto.SidecarStatus:
		b.status = text
	}
}

func (b *bridge) ask(method string, params any) []byte {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	raw, err := b.host.Call(ctx, method, proto.Encode(params))
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	return raw
}

func (b *bridge) command(args string) (m proto.Message) {
	b.t.Helper()
	if err := json.Unmarshal(b.ask(proto.HostCommand, proto.OperatorCommand{Name: "a2mcp", Args: args}), &m); err != nil {
		b.t.Fatal(err)
	}
	return m
}

// post sends a message and returns status and body.
func (b *bridge) post(path, origin, body string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodPost, strings.TrimSuffix(b.local, "/")+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	req.Header.Set(proto.SessionHeader, b.sid)
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	if sid := resp.Header.Get(proto.SessionHeader); sid != "" {
		b.sid = sid
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// call calls a tool and returns the JSON of its text.
func (b *bridge) call(name, arguments string) map[string]any {
	b.t.Helper()
	_, body := b.post("/", "", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments))
	var reply struct {
		Result struct{ Content []struct{ Text string } }
	}
	var result map[string]any
	if err := json.Unmarshal([]byte(body), &reply); err != nil || len(reply.Result.Content) != 1 ||
		json.Unmarshal([]byte(reply.Result.Content[0].Text), &result) != nil {
		b.t.Fatalf("%s: %s, %v", name, body, err)
	}
	return result
}

// tunnelRecords are the args of the tunnel's records, with their sid.
func (b *bridge) tunnelRecords() []string {
	data, err := os.ReadFile(filepath.Join(b.dir, "a2mcp.log"))
	if err != nil {
		b.t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(data)) {
		var r struct {
			SID   any
			Phase string
			Tool  string
			Args  json.RawMessage
		}
		if json.Unmarshal([]byte(line), &r) == nil && r.Tool == "tunnel" {
			all = append(all, fmt.Sprintf("%v %s %s", r.SID, r.Phase, r.Args))
		}
	}
	return all
}

// T1, X1, X3, H8, F3, L7: an open tunnel shows in results, status and log, its
// origin is let in, and all of that ends with it.
func TestTunnelOfABridge(t *testing.T) {
	t.Parallel()
	f := newFake(t, "good")
	b := startBridge(t, f)
	b.post("/", "", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	if got := b.call("xfer_share", `{"path":"."}`); got["publicUrl"] != nil {
		t.Errorf("shared without a tunnel as %v", got["publicUrl"])
	}
	if said := b.command("tunnel stop"); said.Text != "there is no tunnel" {
		t.Errorf("stopping nothing: %q", said.Text)
	}
	said := b.command("tunnel")
	public := urlIn(said.Text)
	if said.Level != proto.LevelInfo || public == "" || !strings.Contains(said.Text, "the whole port is public") {
		t.Fatalf("%q", said.Text)
	}
	if again := b.command("tunnel"); !strings.HasPrefix(again.Text, "the tunnel is open: "+public+"/\n") {
		t.Errorf("the second one: %q", again.Text)
	}
	if got := b.call("xfer_status", `{}`); got["publicUrl"] != public+"/xfer/" {
		t.Errorf("status with a tunnel: %v", got)
	}
	if status := b.command("").Text; !strings.Contains(status, "\ntunnel="+public+"/ since ") || !strings.Contains(status, "\nthe whole port is public") {
		t.Errorf("%s", status)
	}
	if code, body := b.post("/", public, `{"jsonrpc":"2.0","id":2,"method":"ping"}`); code != http.StatusOK {
		t.Errorf("the tunnel's origin: %d %s", code, body)
	}
	if said := b.command("tunnel stop"); said.Text != "the tunnel is closed: "+public+"/ leads nowhere now" {
		t.Errorf("%q", said.Text)
	}
	if code, _ := b.post("/", public, `{"jsonrpc":"2.0","id":3,"method":"ping"}`); code != http.StatusForbidden {
		t.Errorf("the closed tunnel's origin: %d", code)
	}
	if got := b.call("xfer_status", `{}`); got["publicUrl"] != nil {
		t.Errorf("status after the tunnel: %v", got)
	}
	if status := b.command("").Text; !strings.Contains(status, "\ntunnel=none\n") || strings.Contains(status, "public") {
		t.Errorf("%s", status)
	}
	port := portIn(b.local)
	want := []string{
		fmt.Sprintf(`<nil> done {"action":"start","url":%q,"port":%s}`, public, port),
		fmt.Sprintf(`<nil> done {"action":"stop","url":%q,"port":%s}`, public, port),
	}
	if diff := cmp.Diff(want, b.tunnelRecords()); diff != "" {
		t.Error(diff)
	}
}

func urlIn(text string) string {
	_, rest, _ := strings.Cut(text, "https://")
	name, _, ok := strings.Cut(rest, "/")
	if !ok {
		return ""
	}
	return "https://" + name
}

func portIn(url string) string {
	return strings.TrimSuffix(url[strings.LastIndex(url, ":")+1:], "/")
}

// T1, T18: nothing that a caller can reach opens a tunnel or closes one.
func TestTunnelIsTheOperators(t *testing.T) {
	t.Parallel()
	f := newFake(t, "good")
	b := startBridge(t, f)
	b.post("/", "", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	try := func() {
		t.Helper()
		for _, path := range []string{"/", "/tunnel", "/a2mcp/tunnel", "/xfer/tunnel", "/host-llm", "/?tunnel=1"} {
			for _, word := range []string{"tunnel", "tunnel stop", "a2mcp", "command", "xfer_tunnel", "session_start", "hello"} {
				b.post(path, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{"name":"a2mcp","args":"tunnel"}}`, word))
				b.post(path, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":%q,"arguments":{"args":"tunnel stop","tunnel":true}}}`, word))
			}
		}
		b.post("/", "", `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"xfer_share","arguments":{"path":".","tunnel":true}}}`)
		b.post("/", "", `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"xfer_stop","arguments":{"tunnel":true}}}`)
	}
	try()
	if n := len(f.starts()); n != 0 {
		t.Errorf("a caller started %d", n)
	}
	if _, list := b.post("/", "", `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`); !strings.Contains(list, "xfer_share") || strings.Contains(list, `"name":"tunnel`) {
		t.Errorf("%s", list)
	}
	public := urlIn(b.command("tunnel").Text)
	try()
	if status := b.command("").Text; len(f.starts()) != 1 || !strings.Contains(status, "\ntunnel="+public) {
		t.Errorf("a caller closed it: %s", status)
	}
}

// T2, P5: the tunnel closes with the port, and another port has another tunnel.
func TestTunnelClosesWithThePort(t *testing.T) {
	t.Parallel()
	f := newFake(t, "good")
	b := startBridge(t, f)
	public := urlIn(b.command("tunnel").Text)
	b.mu.Lock()
	b.mains = 0
	b.mu.Unlock()
	b.ask(proto.HostSessionShutdown, proto.SessionShutdown{SessionID: "main", IsMain: true})
	until(t, "the child is gone", func() bool { return f.living() == 0 })
	if said := b.command("tunnel"); said.Level != proto.LevelError || len(f.starts()) != 1 {
		t.Errorf("without a port: %q", said.Text)
	}
	b.mu.Lock()
	b.mains = 1
	b.mu.Unlock()
	b.session()
	if again := urlIn(b.command("tunnel").Text); again == "" || again == public {
		t.Errorf("then %q, now %q", public, again)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "a2mcp.json"), fmt.Appendf(nil, `{"token":%q,"host":"127.0.0.2"}`, b.token), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the port has moved and the tunnel with it", func() bool {
		status := b.command("").Text
		return strings.Contains(status, "127.0.0.2") && strings.Contains(status, "\ntunnel=none\n")
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	if !strings.Contains(strings.Join(b.notes, "\n"), "the tunnel is closed, because the port has changed") {
		t.Errorf("told %q", b.notes)
	}
	if b.status != "a2mcp http://127.0.0.2:"+b.status[strings.LastIndex(b.status, ":")+1:] {
		t.Errorf("the status line is %q", b.status)
	}
	records := b.tunnelRecords()
	if len(records) != 4 || !strings.Contains(records[1], `"why":"bridge stopped"`) || !strings.Contains(records[3], `"why":"port changed"`) {
		t.Errorf("recorded %q", records)
	}
}

// P6, T2, T06: whatever ends the bridge at whatever point of a start ends the
// child with it, a deaf one too, within 5 s.
func TestTunnelEndsWithTheBridge(t *testing.T) {
	t.Parallel()
	for n := range 8 {
		manner := "good"
		if n%4 == 3 {
			manner = "deaf"
		}
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			f := newFake(t, manner)
			b := startBridge(t, f)
			go func() { // the answer may never come
				_, _ = b.host.Call(context.Background(), proto.HostCommand, []byte(`{"name":"a2mcp","args":"tunnel","sessionId":"main"}`))
			}()
			time.Sleep(time.Duration(rand.Int64N(int64(700 * time.Millisecond)))) // the random point
			began := time.Now()
			if n%2 == 0 {
				b.stop()
			} else {
				_ = b.eof()
			}
			<-b.ended
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("took %v", took)
			}
			if n := f.living(); n != 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
}
