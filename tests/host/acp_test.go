package host

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestACP: an ACP client opens two sessions in one omp. Each is a main session,
// the extension is evaluated for each, and there is one bridge (P1–P3).
func TestACP(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	h := p.start("acp")
	h.send(frame{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": frame{"protocolVersion": 1, "clientCapabilities": frame{}}})
	h.wait("initialize", func(f frame) bool { return f["id"] == float64(1) && f["result"] != nil })
	open := func(id int, dir string) {
		h.send(frame{"jsonrpc": "2.0", "id": id, "method": "session/new", "params": frame{"cwd": dir, "mcpServers": []any{}}})
		h.wait("session/new", func(f frame) bool { return f["id"] == float64(id) && f["result"] != nil })
	}
	first, second := filepath.Join(p.work), p.home
	open(2, first)
	b := p.bridge().connect()
	open(3, second)
	if files, _ := filepath.Glob(filepath.Join(p.agent, "a2mcp.run", "*.json")); len(files) != 1 {
		t.Fatalf("%d bridges: %v", len(files), files)
	}
	if again := p.bridge(); again.PID != b.PID || again.URL != b.URL {
		t.Errorf("another bridge serves: %+v", again)
	}
	// P2: tools run in the session that started first.
	if dir := b.works("bash", map[string]any{"command": "pwd"}).text(); !strings.Contains(dir, first) {
		t.Errorf("tools run in %q, not in %s", dir, first)
	}
	_ = h.stdin.Close()
	<-h.ended
	b.gone()
}
