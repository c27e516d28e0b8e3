package host

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// sentinel is what a refused prompt reads (D3).
const sentinel = "a2mcp takeover: host inference is disabled in this mode"

// listener is a model provider that only counts who connects, whatever they
// speak: HTTP, HTTP/2, a web socket.
type listener struct {
	net.Listener
	connections atomic.Int64
	mu          sync.Mutex
	first       []string // of each connection, what it began with
}

// since tells what the connections after the first n began with.
func (l *listener) since(n int64) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.first[min(int(n), len(l.first)):])
}

func newListener(t *testing.T) *listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{Listener: inner}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			l.connections.Add(1)
			go func() {
				began := make([]byte, 64)
				_ = conn.SetReadDeadline(time.Now().Add(time.Second))
				n, _ := conn.Read(began)
				line, _, _ := strings.Cut(string(began[:n]), "\r\n")
				l.mu.Lock()
				l.first = append(l.first, line)
				l.mu.Unlock()
				fmt.Fprint(conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				time.Sleep(50 * time.Millisecond)
				conn.Close()
			}()
		}
	}()
	return l
}

// switchTo posts to /host-llm and returns status and body.
func (b *bridge) switchTo(enabled bool) (int, string) {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodPost, b.URL+"host-llm", strings.NewReader(fmt.Sprintf(`{"enabled":%t}`, enabled)))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// prompt sends a prompt and returns what the turn ended with, as text.
func (h *omp) prompt(message string) string {
	h.t.Helper()
	ends := h.count(typed("agent_end"))
	h.send(frame{"type": "prompt", "id": "p", "message": message})
	seen := 0
	end := h.wait("the end of the turn", func(f frame) bool {
		if typed("agent_end")(f) {
			seen++
		}
		return seen > ends
	})
	return fmt.Sprint(end)
}

// TestSwitch: off, a prompt is refused in one attempt and nothing leaves the
// process; a subagent's neither; on, the next prompt reaches the model once (D1,
// D3, D7).
func TestSwitch(t *testing.T) {
	p := newPlace(t)
	p.probed()
	model := newProvider(t, says("hello"))
	p.model(model)
	h := p.start("--mode", "rpc")
	b := p.bridge().connect()
	if status, body := b.switchTo(true); status != 200 || body != `{"enabled":true,"denied":0,"degraded":false}` {
		t.Fatalf("nothing armed: %d %s", status, body)
	}
	before := p.probe()

	if status, body := b.switchTo(false); status != 200 || body != `{"enabled":false,"denied":0,"degraded":false}` {
		t.Fatalf("off: %d %s", status, body)
	}
	h.wait("word of the switch", uiRequest("notify", "a caller switched this host's own model off")) // D9
	// D4: the host does not wake by itself; what stands at the ways out is the bridge's.
	armed := p.probe()
	for _, want := range []string{`"fetch": false`, `"socket": false`, `"connect": false`, "retry.enabled=false", "advisor.enabled=false", "mock mock a2mcp-deny"} {
		if !strings.Contains(armed, want) {
			t.Errorf("armed, the host has no %s:\n%s", want, armed)
		}
	}
	if !strings.Contains(before, "advisor.enabled=true") {
		t.Errorf("the operator's own override is not there before:\n%s", before)
	}
	if text := h.prompt("speak"); !strings.Contains(text, sentinel) || model.count() != 0 {
		t.Errorf("denied: %d requests reached the model; the turn ended with %.300s", model.count(), text)
	}
	if n := h.count(typed("auto_retry_start")); n != 0 {
		t.Errorf("%d retries", n)
	}
	if text := h.command(t, "status"); !strings.Contains(text, "host_llm=deny denied=1") {
		t.Errorf("the status: %s", text)
	}
	// A subagent has a row and a registry of its own: the tripwire answers.
	h.send(frame{"type": "set_subagent_subscription", "id": "s", "level": "progress"})
	b.works("task", map[string]any{"context": "a test", "tasks": []any{map[string]any{"name": "one", "task": "say done"}}})
	h.wait("the subagent's end", subagentEnd)
	if model.count() != 0 {
		t.Errorf("%d requests of a subagent reached the model", model.count())
	}
	if text := h.prompt("speak again"); !strings.Contains(text, sentinel) || model.count() != 0 {
		t.Errorf("after a subagent: %d requests; %.300s", model.count(), text)
	}

	if status, body := b.switchTo(true); status != 200 || !strings.HasPrefix(body, `{"enabled":true,`) {
		t.Fatalf("on: %d %s", status, body)
	}
	if after := p.probe(); after != before {
		t.Errorf("not as it was:\n%s\n%s", before, after)
	}
	if text := h.prompt("speak"); !strings.Contains(text, "hello") || model.count() != 1 {
		t.Errorf("restored: %d requests; %.300s", model.count(), text)
	}
	log := p.hostLog()
	if !strings.Contains(log, "takeover armed: 3 provider(s) shadowed (") || !strings.Contains(log, "model pushed: mock/mock") {
		t.Errorf("the log: %s", log) // D9
	}
}

// TestEveryWayIsClosed: providers of each kind, those that do not go through fetch
// among them, pointed at a listener that counts. Each is reached while allowed,
// and none while denied (D3).
func TestEveryWayIsClosed(t *testing.T) {
	p := newPlace(t)
	l := newListener(t)
	address := "http://" + l.Addr().String()
	// A token of the shape that codex wants to read an account from.
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"https://api.openai.com/auth":{"chatgpt_account_id":"x"}}`))
	p.write(filepath.Join(p.agent, "models.yml"), fmt.Sprintf(`providers:
  mine:
    baseUrl: %[1]s/v1
    api: openai-completions
    apiKey: not-a-real-key
    models: [{id: chat, name: Chat, contextWindow: 100000}]
  responses:
    baseUrl: %[1]s/v1
    api: openai-responses
    apiKey: not-a-real-key
    models: [{id: resp, name: Resp, contextWindow: 100000}]
  anthropic:
    baseUrl: %[1]s
    apiKey: not-a-real-key
  openai-codex:
    baseUrl: %[1]s
    apiKey: e30.%[2]s.x
  cursor:
    baseUrl: %[1]s
    apiKey: not-a-real-key
`, address, claims))
	p.write(filepath.Join(p.agent, "config.yml"), "retry:\n  enabled: false\n")
	h := p.start("--mode", "rpc", "--model", "mine/chat")
	b := p.bridge().connect()

	models := [][2]string{{"mine", "chat"}, {"responses", "resp"}}
	h.send(frame{"type": "get_available_models", "id": "all"})
	all := h.wait("the models", func(f frame) bool { return f["type"] == "response" && f["id"] == "all" })
	for _, provider := range []string{"anthropic", "openai-codex", "cursor"} {
		if id := firstModel(all, provider); id != "" {
			models = append(models, [2]string{provider, id})
		} else {
			t.Errorf("no model of %s", provider)
		}
	}
	connections := func(model [2]string, when string) int64 {
		before := l.connections.Load()
		id := when + model[1]
		h.send(frame{"type": "set_model", "id": id, "provider": model[0], "modelId": model[1]})
		if answer := h.wait("set_model", func(f frame) bool { return f["type"] == "response" && f["id"] == id }); answer["success"] != true {
			t.Errorf("%v: %v", model, answer)
		}
		text := h.prompt("speak")
		t.Logf("%s, %s: %d connections; %s", when, model[0], l.connections.Load()-before, errorOf(text))
		return l.connections.Load() - before
	}
	for _, model := range models {
		if connections(model, "allowed") == 0 {
			t.Errorf("%v does not reach the listener while allowed: this test proves nothing of it", model)
		}
	}
	if status, body := b.switchTo(false); status != 200 {
		t.Fatalf("off: %d %s", status, body)
	}
	h.send(frame{"type": "set_subagent_subscription", "id": "s", "level": "progress"})
	for i, model := range models {
		if n := connections(model, "denied"); n != 0 {
			t.Errorf("%v: %d connections", model, n)
		}
		// A subagent takes the real row of the same model, and so the real way out.
		before, turns := l.connections.Load(), h.count(typed("agent_end"))
		b.works("task", map[string]any{"context": "a test", "tasks": []any{map[string]any{"name": "one", "task": "say done"}}})
		ended := 0
		end := h.wait("the subagent's end", func(f frame) bool {
			if subagentEnd(f) {
				ended++
			}
			return ended > i
		})
		if n := l.connections.Load() - before; n != 0 {
			time.Sleep(1100 * time.Millisecond) // for what they began with
			t.Errorf("a subagent with %v: %d connections: %q", model, n, l.since(before))
		}
		t.Logf("a subagent with %s: %.300s", model[0], fmt.Sprint(end))
		waitFor(t, "the turn that its result begins", func() bool { return h.count(typed("agent_end")) > turns })
	}
	if status, body := b.switchTo(true); status != 200 {
		t.Fatalf("on: %d %s", status, body)
	}
	// The model that was chosen last was chosen while it was denied.
	before := l.connections.Load()
	if text := h.prompt("speak"); l.connections.Load() == before {
		t.Errorf("a model chosen while denied does not reach the listener after restore: %s", errorOf(text))
	}
	for _, model := range models {
		if connections(model, "restored") == 0 {
			t.Errorf("%v does not reach the listener after restore", model)
		}
	}
}

func subagentEnd(f frame) bool {
	text := fmt.Sprint(f)
	return f["type"] == "subagent_lifecycle" && (strings.Contains(text, "completed") || strings.Contains(text, "failed"))
}

// firstModel is a model of a provider in the answer to get_available_models.
func firstModel(answer frame, provider string) string {
	data, _ := answer["data"].(map[string]any)
	models, _ := data["models"].([]any)
	for _, each := range models {
		if model, ok := each.(map[string]any); ok && model["provider"] == provider {
			return fmt.Sprint(model["id"])
		}
	}
	return ""
}

// errorOf cuts the error out of the end of a turn.
func errorOf(text string) string {
	_, text, _ = strings.Cut(text, "errorMessage:")
	return text[:min(len(text), 120)]
}

// TestSwitchRaces: on and off a hundred times at once ends in one consistent
// state (D6, D8).
func TestSwitchRaces(t *testing.T) {
	p := newPlace(t)
	p.probed()
	model := newProvider(t, says("hello"))
	p.model(model)
	h := p.start("--mode", "rpc")
	b := p.bridge().connect()
	before := p.probe()
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			if status, body := b.switchTo(i%2 == 0); status != 200 {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	all.Wait()
	if _, body := b.switchTo(true); !strings.HasPrefix(body, `{"enabled":true,`) {
		t.Errorf("in the end: %s", body)
	}
	if after := p.probe(); after != before {
		t.Errorf("not as it was:\n%s\n%s", before, after)
	}
	if text := h.prompt("speak"); !strings.Contains(text, "hello") || model.count() != 1 {
		t.Errorf("restored: %d requests; %.300s", model.count(), text)
	}
}

// TestDeniedFromTheStart: the configuration's deny holds from the first moment,
// without a sidecar too; a sidecar that is killed changes nothing (D8, D11).
func TestDeniedFromTheStart(t *testing.T) {
	p := newPlace(t)
	model := newProvider(t, says("hello"))
	p.model(model)
	p.write(filepath.Join(p.agent, "a2mcp.json"), `{"host_llm": "deny", "token": "0123456789012345678901234567890123456789"}`)
	h := p.start("--mode", "rpc")
	b := p.bridge().connect()
	if text := h.prompt("speak"); !strings.Contains(text, sentinel) || model.count() != 0 {
		t.Errorf("%d requests; %.300s", model.count(), text)
	}
	h.send(frame{"type": "new_session", "id": "n"})
	h.wait("the new session", func(f frame) bool { return f["type"] == "response" && f["id"] == "n" })
	if text := h.prompt("speak"); !strings.Contains(text, sentinel) || model.count() != 0 {
		t.Errorf("a new session: %d requests; %.300s", model.count(), text)
	}
	kill(t, b.PID)
	old := b.PID
	waitFor(t, "the next sidecar", func() bool { b.PID = p.bridge().PID; return b.PID != old })
	if text := h.prompt("speak"); !strings.Contains(text, sentinel) || model.count() != 0 {
		t.Errorf("after a crash of the sidecar: %d requests; %.300s", model.count(), text)
	}
	if status, body := b.switchTo(true); status != 200 || !strings.HasPrefix(body, `{"enabled":true,"denied":3,`) {
		t.Errorf("on: %d %s", status, body)
	}
	if text := h.prompt("speak"); !strings.Contains(text, "hello") || model.count() != 1 {
		t.Errorf("restored: %d requests; %.300s", model.count(), text)
	}
}

// TestDeniedWithoutASidecar: a deny that is configured does not need one (D11).
func TestDeniedWithoutASidecar(t *testing.T) {
	p := newPlace(t)
	model := newProvider(t, says("hello"))
	p.model(model)
	p.write(filepath.Join(p.agent, "a2mcp.json"), `{"host_llm": "deny"}`)
	p.env = append(p.env, "A2MCP_BINARY="+filepath.Join(p.work, "none"))
	h := p.start("--mode", "rpc")
	h.wait("the notice", uiRequest("notify", "a2mcp is not running"))
	if text := h.prompt("speak"); !strings.Contains(text, sentinel) || model.count() != 0 {
		t.Errorf("%d requests; %.300s", model.count(), text)
	}
	if text := h.command(t, "allow"); !strings.Contains(text, "uses its models again") {
		t.Errorf("allow: %s", text)
	}
	if text := h.prompt("speak"); !strings.Contains(text, "hello") || model.count() != 1 {
		t.Errorf("allowed: %d requests; %.300s", model.count(), text)
	}
}

// TestNoModel: rpc and print start and serve on a machine without any model (O1).
func TestNoModel(t *testing.T) {
	p := newPlace(t)
	h := p.start("--mode", "rpc")
	b := p.bridge().connect()
	h.wait("the notice", uiRequest("notify", "no model"))
	b.works("bash", map[string]any{"command": "true"})
	began := time.Now()
	if text := h.prompt("speak"); !strings.Contains(text, "this host has no model") || time.Since(began) > 20*time.Second {
		t.Errorf("after %s: %.300s", time.Since(began), text)
	}
	if n := h.count(typed("auto_retry_start")); n != 0 {
		t.Errorf("%d retries", n)
	}
	_ = h.stdin.Close()
	<-h.ended

	// With a model configured meanwhile the resumed session moves to it.
	model := newProvider(t, says("hello"))
	p.model(model)
	h = p.start("--mode", "rpc", "-c")
	p.bridge()
	h.wait("the notice", uiRequest("notify", "mock/mock"))
	if text := h.prompt("speak"); !strings.Contains(text, "hello") || model.count() != 1 {
		t.Errorf("resumed: %d requests; %.300s", model.count(), text)
	}
}

// TestPlaceholderIsNotChosen: with a real model the placeholder is listed and no
// more (O1).
func TestPlaceholderIsNotChosen(t *testing.T) {
	p := newPlace(t)
	model := newProvider(t, says("hello"))
	p.model(model)
	h := p.start("--mode", "rpc")
	p.bridge()
	if text := h.prompt("speak"); !strings.Contains(text, "hello") || model.count() != 1 {
		t.Errorf("%d requests; %.300s", model.count(), text)
	}
}
