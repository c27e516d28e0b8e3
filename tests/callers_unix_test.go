//go:build unix

package tests

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// C1, M11: Ctrl-C and the signals that end programs cancel the call that is running,
// unless whoever started the client ignores them (nohup), and end the session.
func TestCallersAreInterrupted(t *testing.T) {
	d := startJSON(t)
	env := []string{"A2MCP_URL=" + d.url, "A2MCP_TOKEN=" + d.token}
	for name, argv := range callers(t) {
		nohup := []string{"sh", "-c", `trap "" HUP; exec "$@"`, "sh"}
		for _, c := range []struct {
			argv    []string
			signals []syscall.Signal // of which the last counts
		}{
			{argv, []syscall.Signal{syscall.SIGINT}},
			{argv, []syscall.Signal{syscall.SIGTERM}},
			{argv, []syscall.Signal{syscall.SIGHUP}},
			{slices.Concat(nohup, argv), []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM}},
		} {
			began, ended := bytes.Count(d.log(), []byte(`"start","tool":"never"`)), bytes.Count(d.log(), []byte(`"done","tool":"never"`))
			cmd, stderr := startCaller(t, env, append(c.argv, "never")...)
			waitFor(t, func() bool { return bytes.Count(d.log(), []byte(`"start","tool":"never"`)) > began })
			var last syscall.Signal
			for _, last = range c.signals {
				_ = cmd.Process.Signal(last)
			}
			_ = cmd.Wait() // the code is looked at
			if code := cmd.ProcessState.ExitCode(); code != 128+int(last) || !strings.HasSuffix(stderr.String(), ": interrupted; the call was cancelled\n") || strings.Count(stderr.String(), "\n") != 1 {
				t.Errorf("%s, %v: exit %d, %s", name, c.signals, code, stderr)
			}
			waitFor(t, func() bool { return bytes.Count(d.log(), []byte(`"done","tool":"never"`)) > ended })
		}
	}
	if _, err := io.WriteString(d.stdin, "/a2mcp\n"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return strings.Contains(d.stderr.String(), "sessions=") })
	if !strings.Contains(d.stderr.String(), "sessions=0") {
		t.Errorf("a session is left\n%s", d.stderr)
	}
}

func startCaller(t *testing.T, env []string, argv ...string) (*exec.Cmd, *lockedText) {
	t.Helper()
	cmd, stderr := exec.Command(argv[0], argv[1:]...), &lockedText{}
	cmd.Env, cmd.Stderr = slices.Concat(os.Environ(), env), stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stderr
}

// C1: a client that is interrupted a second time does not wait for a bridge that does
// not take the cancellation.
func TestCallersAreInterruptedTwice(t *testing.T) {
	came := make(chan bool)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(proto.MethodInitialize)) {
			w.Header().Set(proto.SessionHeader, "session")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"result":{}}`)
			return
		}
		came <- true
		<-r.Context().Done()
	}))
	defer server.Close()
	for name, argv := range callers(t) {
		cmd, stderr := startCaller(t, []string{"A2MCP_TOKEN=right"}, append(argv, "--url", server.URL, "echo")...)
		<-came // the call
		began := time.Now()
		_ = cmd.Process.Signal(syscall.SIGINT)
		<-came // the cancellation
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGINT || time.Since(began) > 2*time.Second {
			t.Errorf("%s: %v after %v; %s", name, cmd.ProcessState, time.Since(began), stderr)
		}
	}
}

// C1: a sidecar that dies in mid-call is not one that was not there.
func TestCallersLoseTheSidecar(t *testing.T) {
	d := startJSON(t)
	for name, argv := range callers(t) {
		began := bytes.Count(d.log(), []byte(`"start","tool":"never"`))
		cmd, stderr := startCaller(t, []string{"A2MCP_URL=" + d.url, "A2MCP_TOKEN=" + d.token}, append(argv, "never")...)
		waitFor(t, func() bool { return bytes.Count(d.log(), []byte(`"start","tool":"never"`)) > began })
		old := d.sidecarPID(t)
		if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 4 || !strings.Contains(stderr.String(), mayHaveRun) {
			t.Errorf("%s: exit %d, %s", name, code, stderr)
		}
		waitFor(t, func() bool { return d.sidecarPID(t) != old })
	}
}

// C1: an answer that cannot be written is not exit 0, and the text goes out in UTF-8
// whatever the locale.
func TestCallersCannotWrite(t *testing.T) {
	server := fakeBridge(t, answerText("ä\n", true))
	env := []string{"A2MCP_TOKEN=right", "LC_ALL=C", "PYTHONUTF8=0", "PYTHONIOENCODING=ascii:strict"}
	for name, argv := range callers(t) {
		argv = append(argv, "--url", server.URL)
		if got := runCaller(t, env, append(argv, "echo")...); got.code != 1 || got.out != "ä\n" {
			t.Errorf("%s: %+v", name, got)
		}
		shell := map[string]string{"full": `"$@" >/dev/full`, "gone": `{ sleep 0.1; "$@"; echo $? >&2; } | true`}
		if name == "a2mcp_call.py" { // Go's runtime opens /dev/null for a descriptor that is closed
			shell["closed"] = `"$@" >&-`
		}
		for what, script := range shell {
			got := runCaller(t, env, slices.Concat([]string{"sh", "-c", script, "sh"}, argv, []string{"echo"})...)
			if what == "gone" && strings.HasSuffix(got.stderr, "\n7\n") {
				got.code = 7
			}
			if got.code != 7 || !strings.Contains(got.stderr, "could") {
				t.Errorf("%s, %s: %+v", name, what, got)
			}
		}
	}
	images := fakeBridge(t, result(`"result":{"content":[{"type":"image","data":"aGVsbG8=","mimeType":"image/png"},{"type":"text","text":"and text"}]}`))
	for name, argv := range callers(t) {
		long := strings.Repeat("x", 300) // no file has such a name
		if got := runCaller(t, env, append(argv, "--url", images.URL, long)...); got.code != 7 || got.out != "and text\n" {
			t.Errorf("%s, an image: %+v", name, got)
		}
	}
	lists := startJSON(t)
	for name, argv := range listers(t) {
		got := runCaller(t, []string{"A2MCP_URL=" + lists.url, "A2MCP_TOKEN=" + lists.token}, append([]string{"sh", "-c", `"$@" >/dev/full`, "sh"}, argv...)...)
		if got.code != 7 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What any other command prints and cannot write is not exit 0 either.
func TestCommandsCannotWrite(t *testing.T) {
	d := startJSON(t)
	for _, line := range []string{
		"version", "--version", "--help", "call --help", "config schema", "config check --agent-dir " + d.dir, "completion", "completion -c", "completion -c fish",
		"tools --json --agent-dir " + d.dir,
	} {
		got := runCaller(t, nil, slices.Concat([]string{"sh", "-c", `"$@" >/dev/full`, "sh", binary(t)}, strings.Fields(line))...)
		if got.code == 0 || strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, "a2mcp: not all of the output could be written: ") {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
