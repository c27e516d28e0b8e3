package host

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestEnds: whatever way omp ends, neither process nor port is left (P6).
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(*omp){
		"end of input": func(h *omp) { _ = h.stdin.Close() },
		"SIGTERM":      func(h *omp) { _ = h.cmd.Process.Signal(syscall.SIGTERM) },
		"SIGHUP":       func(h *omp) { _ = h.cmd.Process.Signal(syscall.SIGHUP) },
		"SIGKILL":      func(h *omp) { _ = h.cmd.Process.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.model(newProvider(t, says("hello")))
			h := p.start("--mode", "rpc")
			b := p.bridge().connect()
			b.works("xfer_share", map[string]any{"path": "."})
			end(h)
			<-h.ended
			b.gone()
		})
	}
}

// TestPrint: print mode serves while it runs, and ends as it always does.
func TestPrint(t *testing.T) {
	p := newPlace(t)
	hold := make(chan struct{})
	model := newProvider(t, func(string, int) reply { return reply{text: "hello from the model", hold: hold} })
	p.model(model)
	cmd := p.command("-p", "say hello")
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := p.bridge().connect()
	b.works("bash", map[string]any{"command": "true"})
	close(hold)
	if err := cmd.Wait(); err != nil || strings.TrimSpace(out.String()) != "hello from the model" {
		t.Errorf("%v: %q", err, out.String())
	}
	b.gone()
}

// TestDuringATurn: a thousand remote calls while the model speaks; none is lost
// and the turn comes out whole.
func TestDuringATurn(t *testing.T) {
	p := newPlace(t)
	hold := make(chan struct{})
	model := newProvider(t, func(string, int) reply { return reply{text: "a long answer in two halves", hold: hold} })
	p.model(model)
	h := p.start("--mode", "rpc")
	b := p.bridge().connect()
	h.send(frame{"type": "prompt", "id": "p", "message": "speak"})
	waitFor(t, "the model's first half", func() bool { return model.count() == 1 })
	p.write(p.work+"/one.txt", "the one line\n")
	var calls sync.WaitGroup
	var mu sync.Mutex
	right := 0
	for range 8 {
		calls.Go(func() {
			for range 125 {
				res := b.call("read", map[string]any{"path": "one.txt"})
				mu.Lock()
				if !res.IsError && strings.Contains(res.text(), "the one line") {
					right++
				}
				mu.Unlock()
			}
		})
	}
	calls.Wait()
	close(hold)
	h.wait("the end of the turn", typed("agent_end"))
	if right != 1000 {
		t.Errorf("%d of 1000 calls were answered rightly", right)
	}
	if start, done := p.records("read"); start != 1000 || done != 1000 {
		t.Errorf("%d start and %d done records", start, done)
	}
	h.send(frame{"type": "get_last_assistant_text", "id": "last"})
	last := h.wait("the last text", func(f frame) bool { return f["type"] == "response" && f["command"] == "get_last_assistant_text" })
	if text := fmt.Sprint(last["data"]); !strings.Contains(text, "a long answer in two halves") {
		t.Errorf("the turn ended with %q", text)
	}
	if model.count() != 1 {
		t.Errorf("the model was asked %d times", model.count())
	}
}

// TestSubagent: a subagent begins and ends beside Main; the port stays (P3, R11).
func TestSubagent(t *testing.T) {
	p := newPlace(t)
	model := newProvider(t, func(request string, _ int) reply {
		if strings.Contains(request, `"name":"yield"`) && !strings.Contains(request, `"tool_result"`) {
			return reply{tool: "yield", input: map[string]any{"result": map[string]any{"data": "done"}}}
		}
		return reply{text: "done"}
	})
	p.model(model)
	h := p.start("--mode", "rpc")
	b := p.bridge().connect()
	h.send(frame{"type": "set_subagent_subscription", "id": "s", "level": "progress"})
	b.works("task", map[string]any{"context": "a test", "tasks": []any{map[string]any{"name": "one", "task": "say done"}}})
	h.wait("the subagent's end", subagentEnd)
	time.Sleep(time.Second) // for a shutdown that must not come
	if next := p.bridge(); next.PID != b.PID || next.URL != b.URL {
		t.Errorf("another bridge serves: %+v", next)
	}
	b.works("read", map[string]any{"path": "."})
}
