package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestApproval: omp asks its operator before a remote call runs. Granted it runs,
// denied it does not, pending it holds up nothing else and can be cancelled
// (M6, M11, F3).
func TestApproval(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	h := p.start("--mode", "rpc", "--approval-mode", "always-ask")
	b := p.bridge().connect()
	h.wait("the address", uiRequest("notify", b.URL))
	asked := 0
	// begin calls write and returns the question that omp asks its client.
	begin := func(id any, path string) (question frame, answered chan result) {
		answered = make(chan result, 1)
		go func() { answered <- b.callAs(id, "write", map[string]any{"path": path, "content": "x"}) }()
		asked++
		seen := 0
		question = h.wait("question", func(f frame) bool {
			if uiRequest("select", "")(f) {
				seen++
				return seen == asked
			}
			return false
		})
		return question, answered
	}
	exists := func(name string) bool { _, err := os.Stat(filepath.Join(p.work, name)); return err == nil }

	question, answered := begin("one", "granted")
	status := h.command(t, "status")
	if !strings.Contains(status, "waiting_for_approval=1") {
		t.Errorf("the status of a waiting call: %s", status)
	}
	began := time.Now()
	var pong struct{}
	b.ask(99, "ping", map[string]any{}, &pong)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("ping took %s while a call waited", took)
	}
	if start, done := p.records("write"); start != 1 || done != 0 {
		t.Errorf("a waiting call has %d start and %d done records", start, done)
	}
	h.send(frame{"type": "extension_ui_response", "id": question["id"], "value": "Approve"})
	if res := <-answered; res.IsError || !exists("granted") {
		t.Errorf("granted: %+v", res)
	}

	question, answered = begin("two", "denied")
	h.send(frame{"type": "extension_ui_response", "id": question["id"], "value": "Deny"})
	if res := <-answered; !res.IsError || !strings.Contains(res.text(), "denied") || exists("denied") {
		t.Errorf("denied: %+v", res)
	}

	question, answered = begin("three", "late")
	began = time.Now()
	b.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"three"}}`)
	if res := <-answered; !res.IsError || res.text() != "cancelled" || time.Since(began) > 2*time.Second {
		t.Errorf("cancelled after %s: %+v", time.Since(began), res)
	}
	h.send(frame{"type": "extension_ui_response", "id": question["id"], "value": "Approve"})
	b.call("xfer_status", nil)
	if exists("late") {
		t.Error("a call that was approved after its cancelling ran")
	}
}

// command types /a2mcp and returns what it answers.
func (h *omp) command(t *testing.T, words string) string {
	t.Helper()
	isAnswer := func(f frame) bool { return uiRequest("notify", "")(f) }
	before := h.count(isAnswer)
	h.send(frame{"type": "prompt", "id": "c", "message": "/a2mcp " + words})
	seen := 0
	answer := h.wait("answer to /a2mcp", func(f frame) bool {
		if isAnswer(f) {
			seen++
		}
		return seen > before
	})
	text, _ := answer["message"].(string)
	return text
}

// TestNobodyToAsk: without anyone to ask, omp refuses at once (M6).
func TestNobodyToAsk(t *testing.T) {
	p := newPlace(t)
	hold := make(chan struct{})
	p.model(newProvider(t, func(string, int) reply { return reply{text: "hello there", hold: hold} }))
	h := p.start("-p", "--approval-mode", "always-ask", "say hello")
	_ = h.stdin.Close() // print mode reads it to the end first
	b := p.bridge().connect()
	res := b.call("bash", map[string]any{"command": "touch ran"})
	if !res.IsError || !strings.Contains(res.text(), "approval") {
		t.Errorf("%+v", res)
	}
	close(hold)
}

// TestCommands: /a2mcp answers in one message (F3).
func TestCommands(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	h := p.start("--mode", "rpc")
	b := p.bridge().connect()
	h.wait("the address", uiRequest("notify", b.URL))
	if text := h.command(t, ""); !strings.Contains(text, b.URL) || !strings.Contains(text, "omp 18.2.3 (rpc)") {
		t.Errorf("the status: %s", text)
	}
	if text := h.command(t, "token"); text != b.token {
		t.Errorf("the token: %q", text)
	}
	if text := h.command(t, "nonsense"); !strings.Contains(text, "`/a2mcp rotate`") {
		t.Errorf("an unknown word: %s", text)
	}
	if text := h.command(t, "rotate"); !strings.Contains(text, "new token") {
		t.Errorf("rotate: %s", text)
	}
	if status, _ := b.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`); status != 401 {
		t.Errorf("the old token still works: %d", status)
	}
}
