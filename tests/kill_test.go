package tests

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/proto"
)

// L1: whatever moment a SIGKILL chooses, a call that was answered has both
// records, a call that the host ran has its start, and every line but a torn
// last one is whole. A few rounds always, a thousand with A2MCP_SOAK=1.
func TestSoakKills(t *testing.T) {
	rounds := 15
	if os.Getenv("A2MCP_SOAK") != "" {
		rounds = 1000
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "a2mcp.json") // nothing is rotated away
	if err := os.WriteFile(config, []byte(`{"auditMaxKB": 4000000}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ran, answered := newCallSet(), newCallSet()
	for range rounds {
		killRound(t, dir, ran, answered)
	}
	starts, dones := readRecords(t, dir)
	for call := range ran.all() {
		if !starts[call] {
			t.Errorf("the host ran %s, whose start is not in the log", call)
		}
	}
	for call := range answered.all() {
		if !starts[call] || !dones[call] {
			t.Errorf("%s was answered, but its records are start=%v done=%v", call, starts[call], dones[call])
		}
	}
	t.Logf("%d kills: %d calls ran, %d were answered, %d starts alone", rounds, len(ran.ids), len(answered.ids), len(starts)-len(dones))
	if len(answered.ids) < rounds {
		t.Errorf("only %d answers in %d rounds: the test does not test", len(answered.ids), rounds)
	}
}

// killRound starts a sidecar on the same folder, calls it from four clients and
// kills it at a random moment of the first 60 ms of traffic.
func killRound(t *testing.T, dir string, ran, answered *callSet) {
	t.Helper()
	cmd := exec.Command(binary(t), "sidecar")
	cmd.Env = []string{}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	host := hostrpc.New(stdout, stdin, echoHost(ran), hostrpc.Options{Side: "h"})
	ctx, cancel := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	parts.Go(func() { _ = host.Run(ctx) })
	url, token := startSession(t, host, dir, &stderr)

	for range 4 {
		parts.Go(func() { callUntilDead(url, token, answered) })
	}
	time.Sleep(time.Duration(rand.Int64N(int64(60 * time.Millisecond)))) // the random moment
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cancel()
	parts.Wait()
	_ = cmd.Wait()
}

// echoHost answers what a sidecar asks, and echoes the arguments of a call.
func echoHost(ran *callSet) hostrpc.Handler {
	return func(_ context.Context, req *hostrpc.Request) {
		switch req.Method {
		case proto.SidecarHostState:
			_ = req.Reply([]byte(`{"mains":1,"llm":{}}`))
		case proto.SidecarToolsCall:
			id, _ := proto.Text(proto.Member(req.Params, "callId"))
			ran.add(id)
			text := proto.Encode(id)
			_ = req.Reply([]byte(`{"outcome":"done","content":[{"type":"text","text":`), text, []byte(`}],"isError":false}`))
		}
	}
}

// startSession says hello, starts a main session and returns where the bridge
// serves.
func startSession(t *testing.T, host *hostrpc.Conn, dir string, stderr fmt.Stringer) (url, token string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ask := func(method string, params any) []byte {
		t.Helper()
		raw, err := host.Call(ctx, method, proto.Encode(params))
		if err != nil {
			t.Fatalf("%s: %v\n%s", method, err, stderr)
		}
		return raw
	}
	ask(proto.HostHello, proto.Hello{Protocol: proto.HostProtocol, AgentDir: dir, Home: dir, Cwd: dir,
		Host: proto.HostInfo{Name: "test", Version: "1", Mode: "test", PID: os.Getpid()}})
	started := ask(proto.HostSessionStart, proto.SessionStart{SessionID: "main", IsMain: true, Mains: 1})
	url, ok := proto.Text(proto.Member(started, "url"))
	if !ok {
		t.Fatalf("session_start: %s\n%s", started, stderr)
	}
	shown := ask(proto.HostCommand, proto.OperatorCommand{Name: "a2mcp", Args: "token"})
	token, _ = proto.Text(proto.Member(shown, "text"))
	return url, token
}

// callUntilDead makes calls in a session of its own until the bridge is gone.
func callUntilDead(url, token string, answered *callSet) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	post := func(sid, body string) (*http.Response, []byte, error) {
		req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return nil, nil, err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set(proto.SessionHeader, sid)
		resp, err := client.Do(req)
		if err != nil {
			return nil, nil, err
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		return resp, data, err
	}
	resp, _, err := post("", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	if err != nil {
		return
	}
	sid := resp.Header.Get(proto.SessionHeader)
	for {
		resp, data, err := post(sid, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}`)
		if err != nil || resp.StatusCode != http.StatusOK {
			return
		}
		var reply struct {
			Result struct{ Content []struct{ Text string } }
		}
		if json.Unmarshal(data, &reply) == nil && len(reply.Result.Content) == 1 {
			answered.add(reply.Result.Content[0].Text)
		}
	}
}

// readRecords reads both generations of the log and fails on a line that is not
// whole, unless it is torn off at the end of what a killed process wrote.
func readRecords(t *testing.T, dir string) (starts, dones map[string]bool) {
	t.Helper()
	starts, dones = map[string]bool{}, map[string]bool{}
	logs, err := filepath.Glob(filepath.Join(dir, "a2mcp.log*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range logs {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var r struct{ ID, Phase string }
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Errorf("%s: %q: %v", name, lines.Text(), err)
				continue
			}
			if r.Phase == "start" {
				starts[r.ID] = true
			} else {
				dones[r.ID] = true
			}
		}
	}
	return starts, dones
}

// callSet is a set of call ids.
type callSet struct {
	mu  sync.Mutex
	ids map[string]bool
}

func newCallSet() *callSet { return &callSet{ids: map[string]bool{}} }

func (s *callSet) add(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids[id] = true
}

func (s *callSet) all() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids
}
