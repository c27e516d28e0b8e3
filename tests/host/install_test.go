package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestDoctor: the whole chain on a running host, one line a stage.
func TestDoctor(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	p.start("--mode", "rpc")
	p.bridge()
	out := p.a2mcp("doctor")
	for _, stage := range []string{"host ", "extension ", "configuration ", "port ", "token ", "catalogue ", "call ", "audit ", "share "} {
		if !strings.Contains(out, "ok    "+stage) {
			t.Errorf("%s is not ok:\n%s", stage, out)
		}
	}
	if !strings.Contains(out, "omp/18.2.3 at ") || !strings.Contains(out, "22 tools: read bash") {
		t.Errorf("what was found:\n%s", out)
	}
}

// TestAsAPlugin: the same package, linked with omp's own command.
func TestAsAPlugin(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	if err := os.RemoveAll(filepath.Join(p.agent, "extensions")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(p.home, "linked")
	p.a2mcp("install", "--package", dir)
	link := p.command("plugin", "link", dir)
	if out, err := link.CombinedOutput(); err != nil {
		t.Fatalf("omp plugin link: %v\n%s", err, out)
	}
	p.start("--mode", "rpc")
	b := p.bridge().connect()
	b.works("bash", map[string]any{"command": "true"})
	started, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(b.PID), "exe"))
	if err != nil || started != filepath.Join(dir, "a2mcp") {
		t.Errorf("the sidecar is %s (%v), not that of the package", started, err)
	}
}

// TestTwoCopies: the extension installed and named with -e as well is one bridge.
func TestTwoCopies(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	dir := filepath.Join(p.home, "second")
	p.a2mcp("install", "--package", dir)
	h := p.start("--mode", "rpc", "-e", dir)
	b := p.bridge().connect()
	h.wait("the address", uiRequest("notify", b.URL))
	if n := h.count(uiRequest("notify", "a2mcp serves at")); n != 1 {
		t.Errorf("%d announcements", n)
	}
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(h.cmd.Process.Pid), "-f", "a2mcp sidecar").Output()
	if lines := strings.Fields(string(out)); err != nil || len(lines) != 1 {
		t.Errorf("sidecars: %q, %v", lines, err)
	}
}
