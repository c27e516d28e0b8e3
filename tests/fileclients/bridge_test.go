//go:build unix

package fileclients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// need returns an environment variable that run.sh sets.
func need(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: start these tests with tests/fileclients/run.sh", name)
	}
	return value
}

// program finds one of the names on PATH.
func program(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("%s is not installed: tests/fileclients/run.sh installs it", names[0])
	return ""
}

// bridge is a running demo: the product's own host, sidecar and port.
type bridge struct {
	t     *testing.T
	bin   string
	URL   string `json:"url"`
	Token string `json:"token"`
	Log   string `json:"log"`
	// output is everything that the bridge printed; read it after stop.
	output bytes.Buffer
	stop   func()
}

func startBridge(t *testing.T) *bridge {
	t.Helper()
	bin := need(t, "A2MCP")
	b := &bridge{t: t, bin: bin}
	cmd := exec.Command(bin, "demo", "--json", "--port", "0", "--agent-dir", t.TempDir())
	cmd.Dir = t.TempDir()
	cmd.Stderr = &b.output
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	b.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, lines)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the demo ended with %v\n%s", err, b.output.String())
		}
	})
	t.Cleanup(b.stop)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		t.Fatalf("reading the demo's first line: %v\n%s", err, b.output.String())
	}
	if err := json.Unmarshal(line, b); err != nil || b.URL == "" || b.Token == "" {
		t.Fatalf("the demo's first line: %q: %v", line, err)
	}
	return b
}

// share shares a folder through the product's own client and returns the result.
func (b *bridge) share(path string, more ...string) map[string]any {
	b.t.Helper()
	cmd := exec.Command(b.bin, append([]string{"call", "xfer_share", "path=" + path}, more...)...)
	cmd.Env = append(os.Environ(), "A2MCP_URL="+b.URL, "A2MCP_TOKEN="+b.Token)
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("xfer_share: %v\n%s", err, out)
	}
	var result map[string]any
	if err := json.Unmarshal(out, &result); err != nil {
		b.t.Fatalf("the result of xfer_share: %v\n%s", err, out)
	}
	return result
}

// xfer is an address below the share; name is percent-encoded where it has to be.
func (b *bridge) xfer(name string) string { return b.URL + "xfer/" + name }

// proxy is an address that adds the token, for clients that know basic authentication only.
func (b *bridge) proxy() string {
	b.t.Helper()
	to, err := url.Parse(b.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Header.Set("Authorization", "Bearer "+b.Token)
		},
		ErrorLog: log.New(io.Discard, "", 0), // a client that hangs up is no news
	})
	b.t.Cleanup(server.Close)
	return server.URL + "/xfer/"
}

// get fetches an address with the token and returns status and body.
func (b *bridge) get(address string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// run runs a program in an environment without the user's own settings and returns what it printed.
func run(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "XDG_CONFIG_HOME="+cmd.Dir, "LC_ALL=C.UTF-8",
		"http_proxy=", "HTTP_PROXY=", "NO_PROXY=*")
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// mustRun is run that has to end well.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run(t, "", args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// write makes a file with its parents.
func write(t *testing.T, content string, path ...string) string {
	t.Helper()
	name := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// read is a file's content, "<none>" where there is none.
func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if os.IsNotExist(err) {
		return "<none>"
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
