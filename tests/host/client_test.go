package host

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestOmpAsClient: one omp calls another's tools through the bridge, configured in
// its own mcp.json as the guide shows it.
func TestOmpAsClient(t *testing.T) {
	far := newPlace(t)
	far.model(newProvider(t, says("hello")))
	far.start("--mode", "rpc")
	farBridge := far.bridge()
	far.write(filepath.Join(far.work, "far.txt"), "a line of the far host\n")

	near := newPlace(t)
	near.model(newProvider(t, says("hello")))
	config := shown(t, "httpfront/CLIENTS.md", "json omp")[0]
	config = strings.NewReplacer("http://127.0.0.1:33615/", farBridge.URL, "TOKEN", farBridge.token).Replace(config)
	near.write(filepath.Join(near.agent, "mcp.json"), config)
	near.start("--mode", "rpc")
	b := near.bridge().connect()
	waitFor(t, "far's tools in near's catalogue", func() bool { return b.tools()["mcp__far_read"] != nil })
	if text := b.works("mcp__far_read", map[string]any{"path": "far.txt"}).text(); !strings.Contains(text, "a line of the far host") {
		t.Errorf("read through two bridges: %q", text)
	}
	if res := b.call("mcp__far_bash", map[string]any{"command": "exit 4"}); !res.IsError {
		t.Errorf("a failure through two bridges: %+v", res)
	}
	if start, done := far.records("bash"); start != 1 || done != 1 {
		t.Errorf("far has %d start and %d done records", start, done)
	}
}
