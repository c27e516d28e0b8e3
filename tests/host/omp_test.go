// Package host drives the real omp, in a home folder of its own, with a model
// provider on loopback, and the bridge installed as its users would.
package host

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long anything may take that a loaded machine makes slow.
const patience = 150 * time.Second

// place is a home folder with an agent folder and a working folder.
type place struct {
	t                 *testing.T
	home, agent, work string
	env               []string
}

// need returns an environment variable that run.sh sets.
func need(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: start these tests with tests/host/run.sh", name)
	}
	return value
}

// newPlace makes the folders and installs the bridge.
func newPlace(t *testing.T) *place {
	t.Helper()
	root := t.TempDir()
	p := &place{t: t, home: filepath.Join(root, "home"), agent: filepath.Join(root, "agent"), work: filepath.Join(root, "work")}
	for _, dir := range []string{p.home, p.agent, p.work} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	modules := need(t, "A2MCP_OMP")
	p.env = []string{
		"HOME=" + p.home, "PI_CODING_AGENT_DIR=" + p.agent, "TERM=xterm-256color", "LANG=C.UTF-8",
		"PATH=" + filepath.Join(modules, ".bin") + ":" + os.Getenv("PATH"), "PI_NO_UPDATE_CHECK=1",
	}
	p.a2mcp("install")
	return p
}

// a2mcp runs the binary as the operator of this place.
func (p *place) a2mcp(args ...string) string {
	p.t.Helper()
	cmd := exec.Command(need(p.t, "A2MCP"), args...)
	cmd.Env, cmd.Dir = p.env, p.work
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Fatalf("a2mcp %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// model points omp at a provider on loopback; without one it has no model at all.
func (p *place) model(provider *provider) {
	p.t.Helper()
	p.write(filepath.Join(p.agent, "models.yml"), fmt.Sprintf(`providers:
  mock:
    baseUrl: %s
    api: anthropic-messages
    apiKey: not-a-real-key
    models:
      - id: mock
        name: Mock
        contextWindow: 100000
        input: [text, image]
`, provider.URL))
}

func (p *place) write(path, text string) {
	p.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// command is omp with arguments.
func (p *place) command(args ...string) *exec.Cmd {
	modules := need(p.t, "A2MCP_OMP")
	argv := append([]string{filepath.Join(modules, "@oh-my-pi", "pi-coding-agent", "dist", "cli.js")}, args...)
	cmd := exec.Command(filepath.Join(modules, ".bin", "bun"), argv...)
	cmd.Env, cmd.Dir = p.env, p.work
	return cmd
}

// omp is a running host that speaks lines of JSON: rpc mode, or ACP.
type omp struct {
	*place
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	ended  chan struct{}
	err    error // of the process, once ended
	mu     sync.Mutex
	frames []frame
	more   chan struct{} // closed and replaced at each frame
}

type frame map[string]any

// start runs omp with its standard input and output as lines of JSON.
func (p *place) start(args ...string) *omp {
	p.t.Helper()
	h := &omp{place: p, cmd: p.command(args...), ended: make(chan struct{}), more: make(chan struct{})}
	var err error
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	stdout, err := h.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	stderr := &strings.Builder{}
	h.cmd.Stderr = stderr
	if err := h.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(h.ended)
		lines := bufio.NewReader(stdout)
		for {
			line, err := lines.ReadBytes('\n')
			var f frame
			if json.Unmarshal(line, &f) == nil {
				h.mu.Lock()
				h.frames = append(h.frames, f)
				close(h.more)
				h.more = make(chan struct{})
				h.mu.Unlock()
			}
			if err != nil {
				break
			}
		}
		h.err = h.cmd.Wait()
	}()
	p.t.Cleanup(func() {
		_ = h.stdin.Close()
		select {
		case <-h.ended:
		case <-time.After(10 * time.Second):
			_ = h.cmd.Process.Kill()
			<-h.ended
		}
		if p.t.Failed() {
			p.t.Logf("omp: %v\n%s\n%s", h.err, stderr.String(), p.hostLog())
		}
	})
	return h
}

// send writes one line of JSON.
func (h *omp) send(message frame) {
	h.t.Helper()
	data, err := json.Marshal(message)
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.stdin.Write(append(data, '\n')); err != nil {
		h.t.Fatal(err)
	}
}

// wait returns the first frame, of all that came, for which match is true.
func (h *omp) wait(what string, match func(frame) bool) frame {
	h.t.Helper()
	deadline := time.After(patience)
	for seen := 0; ; {
		h.mu.Lock()
		news, more := h.frames[seen:], h.more
		seen = len(h.frames)
		h.mu.Unlock()
		for _, f := range news {
			if match(f) {
				return f
			}
		}
		select {
		case <-more:
		case <-h.ended:
			h.t.Fatalf("omp ended (%v) while waiting for %s", h.err, what)
		case <-deadline:
			h.t.Fatalf("no %s within %s", what, patience)
		}
	}
}

// count counts the frames that came so far.
func (h *omp) count(match func(frame) bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, f := range h.frames {
		if match(f) {
			n++
		}
	}
	return n
}

func typed(kind string) func(frame) bool {
	return func(f frame) bool { return f["type"] == kind }
}

// uiRequest matches a request of omp to its user interface.
func uiRequest(method, text string) func(frame) bool {
	return func(f frame) bool {
		if f["type"] != "extension_ui_request" || f["method"] != method {
			return false
		}
		data, _ := json.Marshal(f)
		return strings.Contains(string(data), text)
	}
}

// bridge waits until a bridge of this place serves.
func (p *place) bridge() *bridge {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		files, _ := filepath.Glob(filepath.Join(p.agent, "a2mcp.run", "*.json"))
		for _, file := range files {
			b := &bridge{t: p.t, place: p}
			if data, err := os.ReadFile(file); err == nil && json.Unmarshal(data, b) == nil && b.listens() {
				var config struct{ Token string }
				data, err := os.ReadFile(filepath.Join(p.agent, "a2mcp.json"))
				if err != nil || json.Unmarshal(data, &config) != nil {
					p.t.Fatalf("reading the token: %v", err)
				}
				b.token = config.Token
				return b
			}
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("no bridge within %s\n%s", patience, p.hostLog())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// hostLog is what omp logged.
func (p *place) hostLog() string {
	files, _ := filepath.Glob(filepath.Join(p.home, ".omp", "logs", "*.log"))
	var all strings.Builder
	for _, file := range files {
		data, _ := os.ReadFile(file)
		for line := range strings.Lines(string(data)) {
			if strings.Contains(line, "a2mcp") || strings.Contains(line, `"error"`) {
				all.WriteString(line)
			}
		}
	}
	return all.String()
}

// gone waits until nothing of a bridge is left: no process, no port, no run file.
func (b *bridge) gone() {
	b.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for b.listens() || alive(b.PID) {
		if time.Now().After(deadline) {
			b.t.Fatalf("still there: listens=%v process=%v", b.listens(), alive(b.PID))
		}
		time.Sleep(20 * time.Millisecond)
	}
	if files, _ := filepath.Glob(filepath.Join(b.place.agent, "a2mcp.run", "*")); len(files) > 0 {
		b.t.Errorf("left behind: %v", files)
	}
}

func (b *bridge) listens() bool {
	u, err := url.Parse(b.URL)
	if err != nil || u.Host == "" {
		return false
	}
	conn, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// alive says whether a process runs; a dead one that nobody waited for does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(data), ") Z ")
}
