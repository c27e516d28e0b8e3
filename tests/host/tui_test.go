package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// terminal is omp in a terminal of its own, which tmux holds.
type terminal struct {
	*place
	socket string
}

// terminal starts omp's TUI in a window of 110 columns and 40 lines.
func (p *place) terminal(args ...string) *terminal {
	p.t.Helper()
	tui := &terminal{place: p, socket: filepath.Join(p.t.TempDir(), "tmux")}
	cmd := p.command(args...)
	line := "cd " + quote(p.work) + "; exec env -i"
	for _, variable := range p.env {
		line += " " + quote(variable)
	}
	for _, arg := range cmd.Args {
		line += " " + quote(arg)
	}
	tui.tmux("-f", "/dev/null", "new-session", "-d", "-x", "110", "-y", "40", line)
	pid, err := strconv.Atoi(strings.TrimSpace(tui.tmux("list-panes", "-F", "#{pane_pid}")))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if p.t.Failed() {
			p.t.Logf("the screen:\n%s\n%s", tui.screen(), p.hostLog())
		}
		_ = exec.Command("tmux", "-S", tui.socket, "kill-server").Run() // SIGHUP to omp
		waitFor(p.t, "end of omp", func() bool { return !alive(pid) })
	})
	return tui
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (tui *terminal) tmux(args ...string) string {
	tui.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", tui.socket}, args...)...).CombinedOutput()
	if err != nil {
		tui.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// screen is what is on the screen, and above it.
func (tui *terminal) screen() string {
	out, _ := exec.Command("tmux", "-S", tui.socket, "capture-pane", "-p", "-S", "-200").Output()
	return string(out)
}

// press types keys, as tmux names them.
func (tui *terminal) press(keys ...string) {
	tui.t.Helper()
	tui.tmux(append([]string{"send-keys"}, keys...)...)
}

// shows waits until a pattern is on the screen.
func (tui *terminal) shows(pattern string) string {
	tui.t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if screen := tui.screen(); re.MatchString(screen) {
			return screen
		}
		if time.Now().After(deadline) {
			tui.t.Fatalf("%q is not on the screen", pattern)
		}
	}
}

// TestTUI: what the operator sees. The address and the status line, the card of a
// remote call, the answer of /a2mcp and its completion (M9, F3, P1); nothing but
// the host ever draws.
func TestTUI(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello from the model")))
	// A sidecar that complains on stderr: nothing of it may reach the screen.
	script := filepath.Join(p.work, "loud")
	p.write(script, "#!/bin/sh\necho 'STRAY BYTES ON STDERR' >&2\nexec '"+need(t, "A2MCP")+"' \"$@\"\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "A2MCP_BINARY="+script)
	p.write(filepath.Join(p.agent, "config.yml"), "setupVersion: 999\n")
	tui := p.terminal()
	b := p.bridge().connect()
	tui.shows(`a2mcp serves at ` + regexp.QuoteMeta(b.URL))
	tui.shows(`a2mcp http://127\.0\.0\.1:\d+/`)

	b.works("bash", map[string]any{"command": "echo remote-$((40+2))-call"})
	tui.shows(`remote-42-call`)
	b.works("xfer_status", nil)
	tui.shows(`xfer_status`)
	save(t, "tui-card", tui)
	b.call("nosuch\x1b[2J", nil)
	tui.shows(`a call of nosuch\\x1b\[2J was refused: there is no such tool`) // M9, F4
	save(t, "tui-refused", tui)

	tui.press("/a2mcp ro")
	tui.shows(`rotate`)
	tui.press("Tab")
	tui.shows(`/a2mcp rotate`)
	tui.press("C-u")
	tui.press("/a2mcp", "Enter")
	tui.press("Enter")
	tui.shows(`waiting_for_approval=0`)
	save(t, "tui-status", tui)

	// The sidecar dies and comes back; the screen tells of it in omp's own way.
	kill(t, b.PID)
	waitFor(t, "the next sidecar", func() bool { return p.bridge().PID != b.PID })
	b.works("bash", map[string]any{"command": "echo after-$((1+1))"})
	screen := tui.shows(`after-2`)
	for _, stray := range []string{"STRAY BYTES", "[a2mcp]", "listening:"} {
		if strings.Contains(screen, stray) {
			t.Errorf("%q was written over the screen", stray)
		}
	}

	tui.press("C-u")
	tui.press("/exit", "Enter")
	tui.press("Enter")
	p.bridgeGone(b)
}

// bridgeGone waits for the end of whatever bridge is the place's now.
func (p *place) bridgeGone(b *bridge) {
	p.t.Helper()
	files, _ := filepath.Glob(filepath.Join(p.agent, "a2mcp.run", "*.json"))
	if len(files) == 1 {
		b.PID = p.bridge().PID
	}
	b.gone()
}

// TestAskInTheTUI: a tool that asks the operator gets its answer, and a call that
// needs an approval waits for his key (M6).
func TestAskInTheTUI(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	p.write(filepath.Join(p.agent, "config.yml"), "setupVersion: 999\n")
	tui := p.terminal("--approval-mode", "write")
	b := p.bridge().connect()
	tui.shows(`a2mcp serves at`)

	answered := make(chan result, 1)
	go func() {
		answered <- b.call("ask", map[string]any{"questions": []any{map[string]any{
			"id": "q", "question": "Which colour?", "options": []any{map[string]any{"label": "Red"}, map[string]any{"label": "Green"}},
		}}})
	}()
	tui.shows(`Which colour\?`)
	tui.press("Down")
	tui.press("Enter")
	if res := <-answered; res.IsError || !strings.Contains(res.text(), "Green") {
		t.Errorf("ask: %+v", res)
	}

	go func() { answered <- b.call("bash", map[string]any{"command": "echo approved > out"}) }()
	tui.shows(`Approve`)
	save(t, "tui-approval", tui)
	tui.press("Enter")
	if res := <-answered; res.IsError {
		t.Errorf("approved: %+v", res)
	}
	if data, _ := os.ReadFile(filepath.Join(p.work, "out")); string(data) != "approved\n" {
		t.Errorf("the command left %q", data)
	}
}

// TestTUIWithoutAModel: the TUI starts and serves where there is no model (O1).
func TestTUIWithoutAModel(t *testing.T) {
	p := newPlace(t)
	p.write(filepath.Join(p.agent, "config.yml"), "setupVersion: 999\n")
	tui := p.terminal()
	b := p.bridge().connect()
	tui.shows(`a2mcp: this host has no model`)
	b.works("bash", map[string]any{"command": "true"})
	tui.press("hello", "Enter")
	tui.shows(`log in with /login`)
}

// TestTUIDenied: a denied prompt in the TUI ends with the sentence that says why;
// neither it nor a title nor a search reaches the model (D3, D8).
func TestTUIDenied(t *testing.T) {
	p := newPlace(t)
	model := newProvider(t, says("hello"))
	p.model(model)
	p.write(filepath.Join(p.agent, "config.yml"), "setupVersion: 999\n")
	p.write(filepath.Join(p.agent, "a2mcp.json"), `{"host_llm": "deny", "token": "0123456789012345678901234567890123456789"}`)
	tui := p.terminal()
	b := p.bridge().connect()
	tui.press("what is the answer", "Enter")
	tui.shows(`host inference is disabled in this mode`)
	b.call("web_search", map[string]any{"query": "anything"})
	tui.press("/a2mcp", "Enter")
	tui.press("Enter")
	tui.shows(`host_llm=deny denied=[1-9]`)
	if n := model.count(); n != 0 {
		t.Errorf("%d requests reached the model", n)
	}
	tui.press("/a2mcp allow", "Enter") // the operator has the last word (F3)
	tui.press("Enter")
	tui.shows(`this host's own model is on again`)
	tui.press("what is it now", "Enter")
	waitFor(t, "a request to the model", func() bool { return model.count() > 0 })
}

// save keeps a screen for people to look at, where A2MCP_SCREENS names a folder.
func save(t *testing.T, name string, tui *terminal) {
	dir := os.Getenv("A2MCP_SCREENS")
	if dir == "" {
		return
	}
	out, err := exec.Command("tmux", "-S", tui.socket, "capture-pane", "-p", "-e").Output()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".ansi"), out, 0o644)
	}
	if err != nil {
		t.Log(fmt.Errorf("saving a screen: %w", err))
	}
}
