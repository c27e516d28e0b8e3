package tests

import (
	"fmt"
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

// called is what a client printed and how it ended.
type called struct {
	code        int
	out, stderr string
}

// runCaller runs a client to its end; env stands behind the test's own.
func runCaller(t *testing.T, env []string, argv ...string) called {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = slices.Concat(os.Environ(), env)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if strings.Contains(stderr.String(), "Traceback") {
		t.Errorf("%v: %s", argv, stderr.String())
	}
	return called{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// listers are the clients as they list the tools.
func listers(t *testing.T) map[string][]string {
	t.Helper()
	all := callers(t)
	all["a2mcp call"] = []string{binary(t), "tools"}
	if python, ok := all["a2mcp_call.py"]; ok {
		all["a2mcp_call.py"] = append(python, "--tools")
	}
	return all
}

// raw answers with these bytes and closes the connection.
func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(conn, text)
			conn.Close()
		}
	}
}

func result(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,`+text+`}`)
	}
}

// dribble answers little by little, without an end that anybody would wait for.
func dribble(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		_, _ = io.WriteString(w, " ")
		w.(http.Flusher).Flush()
		time.Sleep(50 * time.Millisecond)
	}
}

const mayHaveRun = "the connection ended before an answer; the call may have run"

// C1, F4: a connection that ends is told from a bridge that is not there, an answer of
// another shape is no answer, and none of it moves the cursor or outlasts the time.
func TestCallersLoseAnAnswer(t *testing.T) {
	for _, c := range []struct {
		name string
		call http.HandlerFunc
		code int
		says string
	}{
		{"closed", raw(""), 4, mayHaveRun},
		{"cut head", raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"), 4, mayHaveRun},
		{"cut body", raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), 4, mayHaveRun},
		{"little by little", dribble, 4, "no answer in time; the call may still be running"},
		{"garbage", raw("\x1b[31mSSH-2.0\r\n\r\n"), 6, "no bridge"},
		{"no result", result(`"id":2`), 6, ""},
		{"a list for an answer", raw("HTTP/1.0 200 OK\r\n\r\n[]"), 6, ""},
		{"deep", raw("HTTP/1.0 200 OK\r\n\r\n" + strings.Repeat("[", 200_000)), 6, ""},
		{"null for a result", result(`"result":null`), 6, ""},
		{"a list for a result", result(`"result":[]`), 6, ""},
		{"no content", result(`"result":{}`), 6, ""},
		{"a text for content", result(`"result":{"content":"x"}`), 6, ""},
		{"a number for a block", result(`"result":{"content":[1]}`), 6, ""},
		{"a number for a text", result(`"result":{"content":[{"type":"text","text":1}]}`), 6, ""},
		{"no image", result(`"result":{"content":[{"type":"image","data":"!","mimeType":"image/png"}]}`), 6, ""},
		{"a text for an error", result(`"error":"x"`), 6, ""},
		{"error", result(`"error":{"code":7,"message":"red \u001b[31m\nline"}`), 6, `red \x1b[31m\nline (7)`},
	} {
		server := fakeBridge(t, c.call)
		for name, argv := range callers(t) {
			t.Run(c.name+" "+name, func(t *testing.T) {
				t.Parallel()
				began := time.Now()
				got := runCaller(t, []string{"A2MCP_TOKEN=right"}, append(argv, "--timeout", "2", "--url", server.URL, "echo")...)
				if got.code != c.code || got.out != "" || !strings.Contains(got.stderr, c.says) || strings.Contains(got.stderr, "\x1b") {
					t.Errorf("%+v, want exit %d and %q", got, c.code, c.says)
				}
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("took %v", took)
				}
			})
		}
	}
	mute := httptest.NewServer(raw(""))
	t.Cleanup(mute.Close)
	for name, argv := range callers(t) {
		if got := runCaller(t, []string{"A2MCP_TOKEN=right"}, append(argv, "--url", mute.URL, "echo")...); got.code != 4 || !strings.Contains(got.stderr, "nothing was called") {
			t.Errorf("%s: a connection that ends at once: %+v", name, got)
		}
	}
}

// A5, C1: a token is one word; another is refused by a text that does not show it.
func TestCallersToken(t *testing.T) {
	server := fakeBridge(t, answerText("hello", false))
	file := filepath.Join(t.TempDir(), "token")
	for _, c := range []struct {
		token string
		code  int
	}{
		{"right\n", 0}, {" right\r\n", 0}, {"right\nsecret", 2}, {"right secret", 2}, {"secret\x1b", 2}, {"secret-ä", 2}, {"secret\xff", 2}, {"\n", 2},
	} {
		if err := os.WriteFile(file, []byte(c.token), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, argv := range callers(t) {
			argv = append(argv, "--url", server.URL, "echo")
			for source, got := range map[string]called{
				"variable": runCaller(t, []string{"A2MCP_TOKEN=" + c.token}, argv...),
				"file":     runCaller(t, []string{"A2MCP_TOKEN=right"}, append(argv, "--token-file", file)...),
			} {
				if got.code != c.code || strings.Contains(got.stderr, "secret") || strings.Contains(got.stderr, "right") {
					t.Errorf("%s, %s, %q: %+v", name, source, c.token, got)
				}
			}
		}
	}
}

// C1: a proxy of the environment does not see the token for a loopback address, nor for
// what only the system knows to be one; for another it is asked.
func TestCallersAskNoProxyForLoopback(t *testing.T) {
	server := fakeBridge(t, answerText("hello", false))
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer proxy.Close()
	port := server.URL[strings.LastIndex(server.URL, ":")+1:]
	env := []string{"A2MCP_TOKEN=right", "http_proxy=" + proxy.URL, "HTTP_PROXY=" + proxy.URL, "no_proxy=", "NO_PROXY="}
	for name, argv := range callers(t) {
		for _, host := range []string{"127.0.0.1", "localhost", "LocalHost", "[::ffff:127.0.0.1]"} {
			got := runCaller(t, env, append(argv, "--url", "http://"+host+":"+port+"/", "echo")...)
			if n := asked.Swap(0); got.code != 0 || n != 0 {
				t.Errorf("%s, %s: the proxy was asked %d times; %+v", name, host, n, got)
			}
		}
		for _, host := range []string{"127.1", "2130706433", "127.0.0.01", "0x7f.0.0.0x1", "0X7F000001", "127.1.", "localhost."} {
			got := runCaller(t, env, append(argv, "--url", "http://"+host+":"+port+"/", "echo")...)
			if n := asked.Swap(0); got.code != 2 || n != 0 || !strings.Contains(got.stderr, "written in full") {
				t.Errorf("%s, %s: the proxy was asked %d times; %+v", name, host, n, got)
			}
		}
		got := runCaller(t, env, append(argv, "--url", "http://bridge_1.invalid/", "echo")...)
		if n := asked.Swap(0); got.code != 6 || n != 1 {
			t.Errorf("%s, elsewhere: the proxy was asked %d times; %+v", name, n, got)
		}
	}
}

// C1: the exit codes are the same wherever they are told.
func TestCallersTellTheSameExitCodes(t *testing.T) {
	page, err := os.ReadFile("../httpfront/CLIENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| exit code | |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var want strings.Builder
	for row := range strings.Lines(table + "\n") {
		cells := strings.Split(row, "|")
		fmt.Fprintf(&want, "    %s %s\n", strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2]))
	}
	if n := strings.Count(want.String(), "\n"); n != 9 {
		t.Errorf("%d exit codes", n)
	}
	for name, argv := range callers(t) {
		got := runCaller(t, nil, append(argv, "--help")...)
		if !strings.Contains(got.out+"\n", "\n"+want.String()) {
			t.Errorf("%s --help says\n%s\nwithout\n%s", name, got.out, want.String())
		}
	}
}

// F4: the tools that a bridge lists do not move the cursor either, nor need they be any.
func TestCallersListTools(t *testing.T) {
	var list atomic.Pointer[string]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(proto.SessionHeader, "session")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":`+*list.Load()+`}`)
	}))
	defer server.Close()
	for text, code := range map[string]int{`{"tools":[{"name":"a\u001b[31m"},{"name":"b"}]}`: 0, `null`: 6, `{}`: 6, `{"tools":{}}`: 6, `{"tools":[1]}`: 6} {
		list.Store(&text)
		for name, argv := range listers(t) {
			got := runCaller(t, []string{"A2MCP_TOKEN=right"}, append(argv, "--url", server.URL)...)
			if got.code != code || strings.Contains(got.out, "\x1b") || code == 0 && !strings.Contains(got.out, `a\x1b[31m`) {
				t.Errorf("%s, %s: %+v", name, text, got)
			}
		}
	}
	null := "null"
	list.Store(&null)
	if got := runCaller(t, []string{"A2MCP_TOKEN=right"}, binary(t), "tools", "--json", "--url", server.URL); got.code != 6 || got.out != "" {
		t.Errorf("as JSON: %+v", got)
	}
}
