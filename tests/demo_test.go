//go:build unix

package tests

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// demo is a running `a2mcp demo`.
type demo struct {
	*liveBridge
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *lockedText
	cwd   string
}

// startDemo starts the demo in folders of its own and waits until it serves.
func startDemo(t *testing.T, args ...string) *demo {
	t.Helper()
	d := &demo{out: &lockedText{}, cwd: t.TempDir(), liveBridge: &liveBridge{dir: t.TempDir(), client: &http.Client{Transport: &http.Transport{}}, stderr: &lockedText{}}}
	d.cmd = exec.Command(binary(t), append([]string{"demo", "--agent-dir", d.dir}, args...)...)
	d.cmd.Dir, d.cmd.Stdout, d.cmd.Stderr = d.cwd, d.out, d.stderr
	stdin, err := d.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.stdin = stdin
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.client.CloseIdleConnections()
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		if err := d.cmd.Wait(); err != nil && !strings.Contains(err.Error(), "killed") {
			t.Errorf("the demo ended with %v\n%s", err, d.stderr)
		}
	})
	return d
}

// startJSON starts a demo with its test tools for a program.
func startJSON(t *testing.T, args ...string) *demo {
	t.Helper()
	d := startDemo(t, append([]string{"--json", "--test-tools"}, args...)...)
	waitFor(t, func() bool { return strings.Contains(d.out.String(), "\n") })
	var first struct {
		URL, Token, Log string
		PID             int
	}
	line, _, _ := strings.Cut(d.out.String(), "\n")
	if err := json.Unmarshal([]byte(line), &first); err != nil || first.PID != d.cmd.Process.Pid {
		t.Fatalf("the first line is %q: %v", line, err)
	}
	d.url, d.token = first.URL, first.Token
	return d
}

// call calls a tool and returns its blocks.
func (d *demo) call(t *testing.T, sid, tool, arguments string) (blocks []block, isError bool) {
	t.Helper()
	resp, data, err := d.post(sid, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v, %v", tool, resp, err)
	}
	var reply struct {
		Result struct {
			Content []block
			IsError bool
		}
	}
	if err := json.Unmarshal(data, &reply); err != nil {
		t.Fatal(err)
	}
	return reply.Result.Content, reply.Result.IsError
}

type block struct{ Type, Text, Data, MimeType string }

// M4, M5, M7: the demo's tools on this machine, and those that misbehave.
func TestDemoTools(t *testing.T) {
	d := startJSON(t)
	sid := d.session(t)
	png, _ := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err := os.WriteFile(filepath.Join(d.cwd, "dot.png"), png, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tool, arguments, want string
		isError               bool
	}{
		{"write", `{"path":"sub/new.txt","content":"one\ntwo\nthree\n"}`, "wrote 14 bytes", false},
		{"read", `{"path":"sub/new.txt"}`, "one\ntwo\nthree\n", false},
		{"read", `{"path":"sub/new.txt","offset":2,"limit":1}`, "two\n", false},
		{"read", `{"path":"missing"}`, "no such file", true},
		{"read", `{"path":"."}`, "not a regular file", true},
		{"read", `{"file":"x"}`, "path is missing; file is not an argument", true},
		{"read", `{"path":7}`, "path has to be of type string", true},
		{"grep", `{"pattern":"^t","path":"."}`, "sub/new.txt:2:two\n", false},
		{"grep", `{"pattern":"("}`, "missing closing", true},
		{"bash", `{"command":"echo out; echo err >&2; pwd"}`, "out\nerr\n" + d.cwd + "\n", false},
		{"bash", `{"command":"echo half; exit 3"}`, "half\n\n[exit code 3]", true},
		{"bash", `{"command":"echo begun; sleep 60","timeout":0.2}`, "[timed out after 200ms]", true},
		{"throw", `{}`, "thrown on purpose", true},
		{"panic", `{}`, "on purpose", true},
		{"vanish", `{}`, "not exposed", true},
		{"Read", `{"path":"sub/new.txt"}`, "not exposed", true},
		{"html", `{}`, "<b>&\u2028<", false},
		{"third_kind", `{}`, `{"type":"resource","uri":"x://y","n":1e2}`, false},
		{"odd_array", `{}`, "ok", false},
	} {
		blocks, isError := d.call(t, sid, c.tool, c.arguments)
		if isError != c.isError || len(blocks) == 0 || !strings.Contains(blocks[0].Text, c.want) {
			t.Errorf("%s %s: %v %+v, want %v %q", c.tool, c.arguments, isError, blocks, c.isError, c.want)
		}
	}
	for _, name := range []string{"detailed_image", "read"} {
		arguments := map[string]string{"read": `{"path":"dot.png"}`}[name]
		if arguments == "" {
			arguments = "{}"
		}
		if blocks, _ := d.call(t, sid, name, arguments); len(blocks) != 1 || blocks[0].Type != "image" || blocks[0].MimeType != "image/png" || blocks[0].Data == "" {
			t.Errorf("%s: %+v", name, blocks)
		}
	}
	if blocks, _ := d.call(t, sid, "big", `{}`); len(blocks[0].Text) != 10_000_000 {
		t.Errorf("big: %d bytes", len(blocks[0].Text))
	}
}

// M11, M12: a cancelled command ends with everything it started; one that ignores
// it is answered in time; exclusive calls run one after the other.
func TestDemoCancelAndQueue(t *testing.T) {
	d := startJSON(t)
	sid := d.session(t)
	for _, c := range []struct{ tool, arguments string }{
		{"bash", `{"command":"sleep 300 & echo $! > child; wait"}`}, {"stubborn", `{"ms":4000}`}, {"never", `{}`},
	} {
		ended := make(chan []block, 1)
		go func() {
			blocks, _ := d.call(t, sid, c.tool, c.arguments)
			ended <- blocks
		}()
		waitFor(t, func() bool { return bytes.Contains(d.log(), []byte(`"phase":"start","tool":"`+c.tool+`"`)) })
		if c.tool == "bash" {
			waitFor(t, func() bool { _, err := os.Stat(filepath.Join(d.cwd, "child")); return err == nil })
		}
		began := time.Now()
		if resp, _, err := d.post(sid, strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}`)); err != nil || resp.StatusCode != http.StatusAccepted {
			t.Fatalf("cancelling: %v, %v", resp, err)
		}
		if blocks := <-ended; len(blocks) != 1 || blocks[0].Text != "cancelled" {
			t.Errorf("%s: %+v", c.tool, blocks)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s: ended after %v", c.tool, took)
		}
	}
	waitFor(t, func() bool {
		data, _ := os.ReadFile(filepath.Join(d.cwd, "child"))
		pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
		return pid > 0 && gone(pid)
	})

	began := time.Now()
	done := make(chan bool, 3)
	for range 3 {
		go func() { d.call(t, sid, "slow_exclusive", `{"ms":200}`); done <- true }()
	}
	if blocks, _ := d.call(t, sid, "echo", `{"text":"beside them"}`); blocks[0].Text != "beside them" || time.Since(began) > 190*time.Millisecond {
		t.Logf("echo beside three exclusive calls took %v", time.Since(began))
	}
	for range 3 {
		<-done
	}
	if took := time.Since(began); took < 600*time.Millisecond {
		t.Errorf("three exclusive calls of 200 ms took %v", took)
	}
}

// gone reports that a process has ended; one that nobody has waited for counts.
func gone(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) != nil
	}
	_, state, _ := strings.Cut(string(data), ") ")
	return strings.HasPrefix(state, "Z")
}

func (d *demo) log() []byte {
	data, _ := os.ReadFile(filepath.Join(d.dir, "a2mcp.log"))
	return data
}

// sidecarPID reads the run file (F5).
func (d *demo) sidecarPID(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(d.dir, "a2mcp.run", strconv.Itoa(d.cmd.Process.Pid)+".json"))
	var run struct {
		URL          string
		PID, HostPID int
		Cwd          string
	}
	if err != nil || json.Unmarshal(data, &run) != nil || run.URL != d.url || run.HostPID != d.cmd.Process.Pid {
		t.Fatalf("run file %q: %v", data, err)
	}
	return run.PID
}

// S5, P6: a sidecar that is killed comes back on the same port and knows its
// sessions; what was running is recorded by its start alone (L1).
func TestDemoSidecarIsKilled(t *testing.T) {
	d := startJSON(t)
	sid := d.session(t)
	for range 3 {
		old := d.sidecarPID(t)
		if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool {
			resp, _, err := d.post(sid, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
			return err == nil && resp.StatusCode == http.StatusOK
		})
		waitFor(t, func() bool { return d.sidecarPID(t) != old })
		if blocks, _ := d.call(t, sid, "echo", `{"text":"again"}`); blocks[0].Text != "again" {
			t.Errorf("echo: %+v", blocks)
		}
	}
}

// P6: a host that is killed leaves no sidecar and no port.
func TestDemoHostIsKilled(t *testing.T) {
	d := startJSON(t)
	sid := d.session(t)
	go d.post(sid, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"never"}}`))
	waitFor(t, func() bool { return bytes.Contains(d.log(), []byte(`"never"`)) })
	sidecar := d.sidecarPID(t)
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	waitFor(t, func() bool { return gone(sidecar) })
	u, _ := url.Parse(d.url)
	if conn, err := net.Dial("tcp", u.Host); err == nil {
		conn.Close()
		t.Error("the port is still open")
	}
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("the sidecar ended after %v", took)
	}
	if !bytes.Contains(d.log(), []byte(`"phase":"done","tool":"never"`)) {
		t.Error("the call in flight has no done record")
	}
}

// F3, F4, M6: the demo's terminal shows commands that work when they are pasted,
// a line for each call with what came from it escaped, and asks.
func TestDemoTerminal(t *testing.T) {
	for _, tool := range []string{"curl", "sed", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not here", tool)
		}
	}
	d := startDemo(t, "--approve", "--test-tools")
	waitFor(t, func() bool { return strings.Contains(d.out.String(), "Ctrl-C ends everything") })
	screen := d.out.String()
	var paste []string
	for lines := bufio.NewScanner(strings.NewReader(screen)); lines.Scan(); {
		if regexp.MustCompile(`^(export A2MCP_URL=|SID=|curl )`).MatchString(lines.Text()) {
			paste = append(paste, lines.Text())
		}
	}
	answered := make(chan string, 1)
	go func() {
		out, err := exec.Command("sh", "-c", strings.Join(paste, "\n")).CombinedOutput()
		answered <- fmt.Sprint(string(out), err)
	}()
	waitFor(t, func() bool { return strings.Contains(d.out.String(), "allow? [1] bash") })
	if _, err := io.WriteString(d.stdin, "what\n/a2mcp\ny 1\n"); err != nil {
		t.Fatal(err)
	}
	if out := <-answered; !strings.Contains(out, `"isError":false`) || !strings.HasSuffix(out, "<nil>") {
		t.Errorf("the pasted commands printed %s", out)
	}
	waitFor(t, func() bool { return strings.Contains(d.out.String(), "ok bash") })
	screen = d.out.String()
	if !strings.Contains(screen, "waiting_for_approval=1") || !strings.Contains(screen, "y allows a call") {
		t.Errorf("the screen is\n%s", screen)
	}
	d.url = regexp.MustCompile(`http://\S+`).FindString(screen)
	d.token = regexp.MustCompile(`TOKEN=(\S+)`).FindStringSubmatch(screen)[1]
	sid := d.session(t)
	go func() {
		waitFor(t, func() bool { return strings.Contains(d.out.String(), "allow? [2] write") })
		_, _ = io.WriteString(d.stdin, "n 2\n")
	}()
	if blocks, isError := d.call(t, sid, "write", `{"path":"x\u001b[31m\n","content":""}`); !isError || blocks[0].Text != "Tool call denied by user: write" {
		t.Errorf("denied: %v %+v", isError, blocks)
	}
	if strings.Contains(d.out.String(), "\x1b") {
		t.Error("an escape sequence of a caller reached the terminal")
	}
}
