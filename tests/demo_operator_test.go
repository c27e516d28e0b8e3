//go:build unix

package tests

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// typed types a line into a demo.
func (d *demo) typed(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(d.stdin, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// shows waits until standard error, where a demo for a program asks, has a text.
func (d *demo) shows(t *testing.T, text string) {
	t.Helper()
	waitFor(t, func() bool { return strings.Contains(d.stderr.String(), text) })
}

// asks begins a call under an id and returns where its text will be.
func (d *demo) asks(sid, id, arguments string) <-chan string {
	text := make(chan string, 1)
	go func() {
		_, data, err := d.post(sid, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"bash","arguments":%s}}`, id, arguments)))
		text <- fmt.Sprint(string(data), err)
	}()
	return text
}

// An answer is for the question that the operator saw: by its number, or where
// there is but one and it could be read. One that goes away is withdrawn.
func TestDemoQuestionsAreNumbered(t *testing.T) {
	d := startJSON(t, "--approve")
	sid := d.session(t)
	d.asks(sid, "a", `{"command":"touch a"}`)
	d.shows(t, `allow? [1] bash {"command":"touch a"}  y 1 or n 1`)
	if resp, _, err := d.post(sid, strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}`)); err != nil || resp.StatusCode != http.StatusAccepted {
		t.Fatal(resp, err)
	}
	d.shows(t, "withdrawn [1] bash")
	b := d.asks(sid, "b", `{"command":"touch b"}`)
	d.shows(t, "allow? [2] bash")
	d.typed(t, "y 1")
	d.shows(t, "no open question has that number; open: 2")
	write := make(chan []block, 1)
	go func() {
		blocks, _ := d.call(t, sid, "write", `{"path":"c","content":""}`)
		write <- blocks
	}()
	d.shows(t, "allow? [3] write")
	time.Sleep(time.Second) // to read it
	d.typed(t, "y")
	d.shows(t, "more than one question is open; answer with the number; open: 2, 3")
	d.typed(t, "n 3")
	if blocks := <-write; blocks[0].Text != "Tool call denied by user: write" {
		t.Errorf("denied: %+v", blocks)
	}
	for _, name := range []string{"a", "b", "c"} {
		if _, err := os.Stat(filepath.Join(d.cwd, name)); err == nil {
			t.Errorf("%s was made without an answer", name)
		}
	}
	d.typed(t, "Y")
	if text := <-b; !strings.Contains(text, `"isError":false`) {
		t.Errorf("allowed: %s", text)
	}
	if _, err := os.Stat(filepath.Join(d.cwd, "b")); err != nil {
		t.Error(err)
	}
	if out := d.out.String(); strings.Count(out, "\n") != 1 {
		t.Errorf("a program reads %q", out)
	}
}

// F4: what is approved is on the screen, whatever stands before it.
func TestDemoQuestionsAreWhole(t *testing.T) {
	d := startJSON(t, "--approve")
	sid := d.session(t)
	arguments := `{"command":"true` + strings.Repeat(" ", 7900) + `; touch x"}`
	d.asks(sid, "a", arguments)
	d.shows(t, "[1] bash "+arguments+"  y 1 or n 1")
	d.typed(t, "n 1")
	long := `{"command":"true` + strings.Repeat(" ", 8000) + `; touch x"}`
	d.asks(sid, "b", long)
	d.shows(t, fmt.Sprintf("[2] bash %s …(%d characters are not shown)… %s  y 2 or n 2", long[:4000], len(long)-8000, long[len(long)-4000:]))
	d.typed(t, strings.Repeat("y", 70_000))
	d.shows(t, "too long; nothing of it was taken")
	c := d.asks(sid, "c", `{"command":"true"}`)
	d.typed(t, "n 2")
	d.shows(t, "[3] bash")
	_ = d.stdin.Close()
	if text := <-c; !strings.Contains(text, "nobody is there to approve it") {
		t.Errorf("open at the end of the input: %s", text)
	}
	if text := <-d.asks(sid, "d", `{"command":"true"}`); !strings.Contains(text, "nobody is there to approve it") || !strings.Contains(text, `"isError":true`) {
		t.Errorf("asked after the end of the input: %s", text)
	}
}

// ends runs a demo that cannot serve and returns its exit code and what it said.
func ends(t *testing.T, env []string, args ...string) (code int, out, told string) {
	t.Helper()
	cmd := exec.Command(binary(t), append([]string{"demo"}, args...)...)
	var outText, errText lockedText
	cmd.Stdout, cmd.Stderr, cmd.Env = &outText, &errText, append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode(), outText.String(), errText.String()
}

// P7, F1: a demo that cannot serve says why and ends, for a program too.
func TestDemoCannotServe(t *testing.T) {
	for _, c := range []struct {
		name, config string
		args         []string
		code         int
		told         string
	}{
		{"no port", "", []string{"--port=99999"}, 2, "a2mcp: 99999 is no port; give one from 1 to 65535, or 0"},
		{"negative", "", []string{"--port=-1"}, 2, "a2mcp: -1 is no port"},
		{"foreign address", `{"host":"192.0.2.1","token":"0123456789012345678901234567890123456789"}`, nil, 1, "a2mcp: not serving: listening on 192.0.2.1:0: "},
		{"wrong field", `{"token":"short"}`, nil, 1, "a2mcp: not serving: "},
		{"null", `null`, []string{"--port=4410"}, 1, "a2mcp: not serving: "},
	} {
		for _, more := range [][]string{nil, {"--json"}} {
			t.Run(fmt.Sprint(c.name, more), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				config := filepath.Join(dir, "a2mcp.json")
				if c.config != "" {
					if err := os.WriteFile(config, []byte(c.config), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				code, out, told := ends(t, nil, append(append([]string{"--agent-dir", dir}, c.args...), more...)...)
				if code != c.code || !strings.Contains(told, c.told) || more != nil && out != "" {
					t.Errorf("exit code %d\n%s%s", code, out, told)
				}
				if data, _ := os.ReadFile(config); string(data) != c.config {
					t.Errorf("the configuration is now %q", data)
				}
			})
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, port := range []string{"0", "4410"} {
		code, _, told := ends(t, []string{"A2MCP_CONFIG=" + filepath.Join(dir, "file", "a2mcp.json")}, "--agent-dir", dir, "--port", port)
		if code != 1 || !strings.Contains(told, "not a directory") {
			t.Errorf("a configuration that cannot be made: exit code %d\n%s", code, told)
		}
	}
}

// F1: the port goes into the configuration, as it is written there, through links and past what others
// have put beside it, but not while a bridge is running with it.
func TestDemoPort(t *testing.T) {
	folder, port := t.TempDir(), freePort(t)
	put := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	target, victim := put("target.json", `{"auditKeep":  2}`), put("victim", "mine")
	config, log := filepath.Join(folder, "link.json"), filepath.Join(folder, "the.log")
	if err := os.Symlink(filepath.Base(target), config); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, target+".new"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("A2MCP_CONFIG", config)
	t.Setenv("A2MCP_AUDIT", log)
	d := startJSON(t, "--port", port)
	data, err := os.ReadFile(target)
	if err != nil || !strings.Contains(string(data), `"port": `+port+`,`) || !strings.HasSuffix(string(data), `"auditKeep":  2}`) || !strings.HasSuffix(d.url, ":"+port+"/") {
		t.Errorf("%s: %s %v", d.url, data, err)
	}
	if _, err := os.Readlink(config); err != nil {
		t.Error(err)
	}
	if data, _ := os.ReadFile(victim); string(data) != "mine" {
		t.Errorf("another's file is now %q", data)
	}
	if !strings.Contains(d.out.String(), `"log":"`+log+`"`) {
		t.Errorf("the log is %s, not as told: %s", log, d.out)
	}
	if _, err := os.Stat(log); err != nil {
		t.Error(err)
	}
}

// A second demo with a folder does not move the bridge of the first.
func TestDemoTwice(t *testing.T) {
	port := freePort(t)
	first := startJSON(t, "--port", port)
	before, err := os.ReadFile(filepath.Join(first.dir, "a2mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	second := startJSON(t, "--agent-dir", first.dir, "--port", freePort(t)) // the later --agent-dir counts
	if after, _ := os.ReadFile(filepath.Join(first.dir, "a2mcp.json")); string(after) != string(before) {
		t.Errorf("the configuration was %s and is now %s", before, after)
	}
	if first.url == second.url || !strings.Contains(second.stderr.String(), "--port does not count") {
		t.Errorf("%s, %s\n%s", first.url, second.url, second.stderr)
	}
}

// freePort is a port that nobody listened on a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// What shows something until it is told to end ends well with each signal that ends
// programs.
func TestSignalsEndWhatGoesOn(t *testing.T) {
	d := startJSON(t)
	d.call(t, d.session(t), "echo", `{"text":"x"}`)
	for _, line := range []string{"demo --json --agent-dir " + t.TempDir(), "audit --follow --agent-dir " + d.dir} {
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			cmd, out := exec.Command(binary(t), strings.Fields(line)...), &lockedText{}
			cmd.Stdout = out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool { return strings.Contains(out.String(), "\n") })
			_ = cmd.Process.Signal(s)
			if err := cmd.Wait(); err != nil {
				t.Errorf("%s, %v: %v", line, s, err)
			}
		}
	}
}
