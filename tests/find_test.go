//go:build unix

package tests

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// running writes what bridges of an agent folder say of themselves (F5), of each its
// address and the folder of its host; this process stands for all of them.
func running(t *testing.T, dir string, bridges ...[2]string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "a2mcp.run"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a2mcp.json"), []byte(`{"token":"right"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, b := range bridges {
		text := fmt.Sprintf(`{"url":%q,"pid":%d,"cwd":%q}`, b[0], os.Getpid(), b[1])
		if err := os.WriteFile(filepath.Join(dir, "a2mcp.run", fmt.Sprint(i)+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// F5: of several bridges the one whose host works nearest above is taken, whatever
// characters are in the path of the agent folder.
func TestFindingTheNearestBridge(t *testing.T) {
	root, agent := t.TempDir(), filepath.Join(t.TempDir(), "[x]*?")
	a, b, c := fakeBridge(t, answerText("a", false)), fakeBridge(t, answerText("b", false)), fakeBridge(t, answerText("c", false))
	running(t, agent, [2]string{a.URL, filepath.Join(root, "a")}, [2]string{b.URL, filepath.Join(root, "a", "b")}, [2]string{c.URL, filepath.Join(root, "c")})
	for folder, want := range map[string]string{"a": "a", "a/x": "a", "a/b": "b", "a/b/c": "b", "a/bb": "a", "c": "c", ".": "several bridges", "d": "several bridges"} {
		cmd := exec.Command(binary(t), "call", "--agent-dir", agent, "echo")
		cmd.Dir = filepath.Join(root, folder)
		if err := os.MkdirAll(cmd.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), want) || len(want) == 1 && string(out) != want+"\n" {
			t.Errorf("from %s: %s, want %s", folder, out, want)
		}
	}
	running(t, agent, [2]string{a.URL, root}, [2]string{b.URL, root}, [2]string{c.URL, root})
	cmd := exec.Command(binary(t), "call", "--agent-dir", agent, "echo")
	cmd.Dir = root
	if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), "several bridges") {
		t.Errorf("of three in one folder: %s", out)
	}
}

// C1: the token of the agent folder goes to its own bridges alone, unless it was given.
func TestOwnTokenGoesToOwnBridges(t *testing.T) {
	agent, tokens := t.TempDir(), filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(tokens, []byte("given"), 0o600); err != nil {
		t.Fatal(err)
	}
	own := fakeBridge(t, answerText("own", false))
	var asked atomic.Int32
	stranger := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer stranger.Close()
	running(t, agent, [2]string{own.URL + "/", "/"})
	port := own.URL[strings.LastIndex(own.URL, ":"):]
	argv := []string{binary(t), "call", "--agent-dir", agent, "echo"}
	for _, c := range []struct {
		url   string
		code  int
		asked int32
		more  []string
	}{
		{own.URL, 0, 0, nil},
		{own.URL + "/any/path", 0, 0, nil},
		{"http://localhost" + port, 2, 0, nil},
		{"https://127.0.0.1" + port, 2, 0, nil},
		{stranger.URL, 2, 0, nil},
		{stranger.URL, 6, 2, []string{"--token-file", tokens}},
	} {
		for _, got := range []called{
			runCaller(t, []string{"A2MCP_URL=" + c.url}, append(argv, c.more...)...),
			runCaller(t, nil, append(append(argv, "--url", c.url), c.more...)...),
		} {
			if got.code != c.code || c.code == 2 && !strings.Contains(got.stderr, "give --token-file or set A2MCP_TOKEN") {
				t.Errorf("%s %v: %+v", c.url, c.more, got)
			}
		}
		if n := asked.Swap(0); n != c.asked {
			t.Errorf("%s %v: the stranger was asked %d times", c.url, c.more, n)
		}
	}
	if err := os.WriteFile(filepath.Join(agent, "a2mcp.json"), []byte(`{"token":"`+fixedToken+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got := runCaller(t, nil, binary(t), "doctor", "--agent-dir", agent, "--url", stranger.URL)
	if n := asked.Load(); n != 0 || got.code != 1 || !strings.Contains(got.out, "FAIL  port ") {
		t.Errorf("the doctor asked the stranger %d times; %+v", n, got)
	}
}

// Who finds no bridge is told of a demo that is running.
func TestFindingTheDemo(t *testing.T) {
	home, empty := t.TempDir(), t.TempDir()
	cache := filepath.Join(home, "cache")
	env := []string{"HOME=" + home, "XDG_CACHE_HOME=" + cache}
	if got := runCaller(t, env, binary(t), "tools", "--agent-dir", empty); got.code != 5 || strings.Contains(got.stderr, "demo") {
		t.Errorf("without a demo: %+v", got)
	}
	dir := filepath.Join(cache, "a2mcp", "demo")
	startDemo(t, "--agent-dir", dir)
	waitFor(t, func() bool {
		got := runCaller(t, env, binary(t), "tools", "--agent-dir", empty)
		return got.code == 5 && strings.HasSuffix(got.stderr, "; a demo is running: --agent-dir "+dir+"\n")
	})
	if got := runCaller(t, env, binary(t), "tools", "--agent-dir", dir); got.code != 0 {
		t.Errorf("with its folder: %+v", got)
	}
}

// An empty value is what a shell makes of a variable that is not set, and no default.
func TestEmptyFlags(t *testing.T) {
	env := []string{"HOME=" + t.TempDir(), "PI_CODING_AGENT_DIR="}
	for _, c := range []struct {
		args []string
		flag string
	}{
		{[]string{"install", "--package", ""}, "--package"},
		{[]string{"install", "--agent-dir="}, "--agent-dir"},
		{[]string{"uninstall", "--profile", ""}, "--profile"},
		{[]string{"tools", "--url", ""}, "--url"},
		{[]string{"call", "bash", "--json="}, "--json"},
		{[]string{"audit", "--tool", "", "--json"}, "--tool"},
		{[]string{"demo", "--agent-dir", ""}, "--agent-dir"},
		{[]string{"doctor", "--token-file", ""}, "--token-file"},
	} {
		got := runCaller(t, env, append([]string{binary(t)}, c.args...)...)
		if got.code != 2 || got.out != "" || got.stderr != "a2mcp: "+c.flag+" is empty: give it a value or leave it out\n" {
			t.Errorf("%q: %+v", c.args, got)
		}
	}
	server := fakeBridge(t, answerText("hello", false))
	for _, args := range [][]string{{"empty="}, {"--", "--url="}} { // what are arguments of the tool
		got := runCaller(t, []string{"A2MCP_TOKEN=right", "A2MCP_URL=" + server.URL}, append([]string{binary(t), "call", "echo"}, args...)...)
		if got.code != 0 {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	flag, command := runCaller(t, nil, binary(t), "--version"), runCaller(t, nil, binary(t), "version")
	if flag != command || flag.code != 0 || flag.out == "" {
		t.Errorf("%+v\n%+v", flag, command)
	}
}
