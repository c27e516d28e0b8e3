package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bridge is a running demo: the product's own host, sidecar and port.
type bridge struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	Log   string `json:"log"`
	PID   int    `json:"pid"`
}

// need returns an environment variable that run.sh sets.
func need(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("%s is not set: start these tests with tests/clients/run.sh", name)
	}
	return value
}

// startBridge starts `a2mcp demo` with its test tools in a folder of its own.
func startBridge(t *testing.T) *bridge {
	t.Helper()
	cmd := exec.Command(need(t, "A2MCP"), "demo", "--json", "--test-tools", "--agent-dir", t.TempDir())
	cmd.Dir = t.TempDir()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stdout)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		go io.Copy(io.Discard, lines)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the demo ended with %v\n%s", err, stderr.String())
		}
	})
	line, err := lines.ReadBytes('\n')
	if err != nil {
		t.Fatalf("reading the demo's first line: %v\n%s", err, stderr.String())
	}
	b := &bridge{}
	if err := json.Unmarshal(line, b); err != nil || b.URL == "" || b.Token == "" {
		t.Fatalf("the demo's first line: %q: %v", line, err)
	}
	go io.Copy(io.Discard, lines)
	return b
}

// client is an http.Client that sends the token.
func (b *bridge) client() *http.Client { return &http.Client{Transport: bearer(b.Token)} }

type bearer string

func (token bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

// forget makes the bridge forget every session a client holds: 64 newer ones
// take their places (S3).
func (b *bridge) forget(t *testing.T) {
	t.Helper()
	for range 64 {
		resp, err := b.client().Post(b.URL, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("initialize: %s", resp.Status)
		}
	}
}

// record is a line of the audit log.
type record struct {
	ID, Phase, Tool string
	IsError         *bool
	MS              float64
}

func (b *bridge) records(t *testing.T) []record {
	t.Helper()
	data, err := os.ReadFile(b.Log)
	if err != nil {
		t.Fatal(err)
	}
	var list []record
	for line := range strings.Lines(string(data)) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("audit line %q: %v", line, err)
		}
		list = append(list, r)
	}
	return list
}

// waitDone waits for the done record of the latest call of a tool.
func (b *bridge) waitDone(t *testing.T, tool string, within time.Duration) record {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		for _, r := range b.records(t) {
			if r.Tool == tool && r.Phase == "done" {
				return r
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no done record of %s within %v", tool, within)
		}
		time.Sleep(20 * time.Millisecond) // polling a file; the deadline decides
	}
}

// waitStart waits until a call of the tool has begun.
func (b *bridge) waitStart(t *testing.T, tool string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		for _, r := range b.records(t) {
			if r.Tool == tool && r.Phase == "start" {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("no start record of %s", tool)
}

// node prepares a Node program of the pinned packages.
func node(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	modules := need(t, "A2MCP_NPM")
	cmd := exec.Command(filepath.Join(modules, ".bin", "node"), args...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	return cmd
}
