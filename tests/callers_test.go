package tests

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// callers are the two command-line clients, which have to behave alike (C1).
func callers(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{"a2mcp call": {binary(t), "call"}}
	python, err := exec.LookPath("python3")
	switch {
	case err == nil:
		all["a2mcp_call.py"] = []string{python, filepath.Join("..", "cmd", "python", "a2mcp_call.py")}
	case os.Getenv("CI") != "" || os.Getenv("A2MCP_CI") != "":
		t.Error("python3 is not here: a2mcp_call.py cannot be tried")
	default:
		t.Log("python3 is not here: a2mcp_call.py was not tried")
	}
	return all
}

// fakeBridge answers tools/call with what a test wants.
func fakeBridge(t *testing.T, call http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		method, _ := proto.Text(proto.Member(body, "method"))
		switch {
		case r.Header.Get("Authorization") != "Bearer right":
			w.WriteHeader(http.StatusUnauthorized)
		case method == proto.MethodInitialize:
			w.Header().Set(proto.SessionHeader, "session")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"result":{}}`)
		case method == proto.MethodToolsCall:
			call(w, r.WithContext(context.WithValue(r.Context(), sentBody{}, body)))
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// sentBody is the key of the body that a call came with.
type sentBody struct{}

func answerText(text string, isError bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		flag := map[bool]string{true: "true", false: "false"}[isError]
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"content":`+string(proto.TextContent(text))+`,"isError":`+flag+`}}`)
	}
}

// C1: distinct exit codes for a tool error, a wrong line, a refused token, a hung
// call, a dead bridge and something that is no bridge; the token is never printed.
func TestCallersExitCodes(t *testing.T) {
	var handshakes, strangers atomic.Int32
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers.Add(1) }))
	defer stranger.Close()
	for _, c := range []struct {
		name  string
		call  http.HandlerFunc
		token string
		args  []string
		code  int
		out   string
	}{
		{"done", answerText("hello", false), "right", []string{"echo", "text=x"}, 0, "hello\n"},
		{"tool error", answerText("broken", true), "right", []string{"echo"}, 1, "broken\n"},
		{"wrong argument", answerText("", false), "right", []string{"echo", "text"}, 2, ""},
		{"no JSON", answerText("", false), "right", []string{"echo", "n:=x"}, 2, ""},
		{"no number", answerText("", false), "right", []string{"echo", "n:=NaN"}, 2, ""},
		{"not UTF-8", answerText("", false), "right", []string{"echo", "text=\xff"}, 2, ""},
		{"not UTF-8 as a whole", answerText("", false), "right", []string{"echo", "--json", "{\"text\":\"\xff\"}"}, 2, ""},
		{"no address", answerText("", false), "right", []string{"echo", "--url", "127.0.0.1:1"}, 2, ""},
		{"no host", answerText("", false), "right", []string{"echo", "--url", "http://:80/"}, 2, ""},
		{"no port", answerText("", false), "right", []string{"echo", "--url", "http://127.0.0.1:65536/"}, 2, ""},
		{"no folder", answerText("", false), "right", []string{"echo", "--out", "/not/there"}, 2, ""},
		{"empty address", answerText("", false), "right", []string{"echo", "--url="}, 2, ""},
		{"empty token file", answerText("", false), "right", []string{"echo", "--token-file", ""}, 2, ""},
		{"empty folder", answerText("", false), "right", []string{"echo", "--out", ""}, 2, ""},
		{"lines", answerText("one\ntwo\n\n", false), "right", []string{"echo"}, 0, "one\ntwo\n\n"},
		{"no text", answerText("", false), "right", []string{"echo"}, 0, "\n"},
		{"refused token", answerText("", false), "wrong-and-secret", []string{"echo"}, 3, ""},
		{"hung", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "right", []string{"--timeout", "1", "echo"}, 4, ""},
		{"hung, with a unit", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "right", []string{"--timeout", "0m0.5s", "echo"}, 4, ""},
		{"no time-out", answerText("hello", false), "right", []string{"--timeout", "0", "echo"}, 0, "hello\n"},
		{"time-out below zero", answerText("", false), "right", []string{"--timeout=-1", "echo"}, 2, ""},
		{"time-out that is no time", answerText("", false), "right", []string{"--timeout", "NaN", "echo"}, 2, ""},
		{"time-out of no unit", answerText("", false), "right", []string{"--timeout", "5 days", "echo"}, 2, ""},
		{"no bridge", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, "right", []string{"echo"}, 6, ""},
		{"redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, stranger.URL, http.StatusFound) }, "right", []string{"echo"}, 6, ""},
		{"forgotten session", func(w http.ResponseWriter, r *http.Request) {
			if handshakes.Add(1)%2 == 1 {
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"unknown session"}}`)
				return
			}
			answerText("again", false)(w, r)
		}, "right", []string{"echo"}, 0, "again\n"},
	} {
		server := fakeBridge(t, c.call)
		for name, argv := range callers(t) {
			args := slices.Concat(argv[1:], []string{"--url", server.URL}, c.args)
			checkCaller(t, name+": "+c.name, argv[0], args, c.token, c.code, c.out)
		}
	}
	if n := strangers.Load(); n != 0 {
		t.Errorf("%d requests with the token followed a redirect", n)
	}
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	for name, argv := range callers(t) {
		checkCaller(t, name+": dead bridge", argv[0], slices.Concat(argv[1:], []string{"--url", dead.URL, "echo"}), "right", 5, "")
	}
}

func checkCaller(t *testing.T, name, path string, args []string, token string, code int, out string) {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "A2MCP_TOKEN="+token)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	_ = cmd.Run() // the code is looked at
	if got := cmd.ProcessState.ExitCode(); got != code || stdout.String() != out {
		t.Errorf("%s: exit %d, want %d; printed %q, want %q; %s", name, got, code, stdout.String(), out, stderr.String())
	}
	if code > 1 && stderr.Len() == 0 {
		t.Errorf("%s: not a word about what went wrong", name)
	}
	if strings.Contains(stderr.String(), token) && token != "right" {
		t.Errorf("%s: the token shows: %s", name, stderr.String())
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("%s: took %v", name, took)
	}
}

// C1: arguments go out as they were meant, an image becomes a file.
func TestCallersArgumentsAndImages(t *testing.T) {
	var sent atomic.Pointer[string]
	server := fakeBridge(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := r.Context().Value(sentBody{}).([]byte)
		arguments := string(proto.Member(proto.Member(body, "params"), "arguments"))
		sent.Store(&arguments)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}],"isError":false}}`)
	})
	for name, argv := range callers(t) {
		dir := t.TempDir()
		args := slices.Concat(argv[1:], []string{"--url", server.URL, "--out", dir, "a/../tool", "text=a=b <ä>", "n:=[1,2.5]"})
		cmd := exec.Command(argv[0], args...)
		cmd.Env = append(os.Environ(), "A2MCP_TOKEN=right")
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got struct {
			Text string
			N    []float64
		}
		if err := json.Unmarshal([]byte(*sent.Load()), &got); err != nil || got.Text != "a=b <ä>" || len(got.N) != 2 {
			t.Errorf("%s: sent %s: %v", name, *sent.Load(), err)
		}
		path := strings.TrimSpace(string(out))
		if data, err := os.ReadFile(path); err != nil || string(data) != "hello" || filepath.Dir(path) != dir {
			t.Errorf("%s: image at %q: %q, %v", name, path, data, err)
		}
	}
}
