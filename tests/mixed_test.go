//go:build unix

package tests

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestSoakMixed is everything at once for as long as A2MCP_SOAK_MINUTES says, an
// hour without it and two seconds without A2MCP_SOAK: calls, calls that are given
// up, cancelled and refused, handshakes, files up and down, edits of the
// configuration, and a sidecar that is killed now and then. In the end descriptors
// and memory of host and sidecar are where they began (S3, M11, X5, F2, P6, L1).
func TestSoakMixed(t *testing.T) {
	lasts, restartEvery := 2*time.Second, time.Second
	if soaking() {
		minutes, err := strconv.ParseFloat(os.Getenv("A2MCP_SOAK_MINUTES"), 64)
		if err != nil {
			minutes = 60
		}
		lasts, restartEvery = time.Duration(minutes*float64(time.Minute)), 90*time.Second
	}
	m := &mixed{demo: startJSON(t)}
	m.writeConfig(t, 0)
	m.share(t)
	m.run(t, 500*time.Millisecond) // warm: buffers, pools, the first handshakes
	begin := m.weigh(t)

	ends := time.Now().Add(lasts)
	for n := 1; time.Now().Before(ends); n++ {
		m.run(t, min(restartEvery, time.Until(ends)))
		m.restart(t)
		m.writeConfig(t, n)
		m.share(t)
	}
	m.run(t, 500*time.Millisecond)
	m.client.CloseIdleConnections()
	waitFor(t, func() bool { w := m.weigh(t); return w.descriptors <= begin.descriptors+4 })
	end := m.weigh(t)
	t.Logf("%v: %d calls, %d of them given up, %d uploads, %d downloads, %d handshakes, %d restarts",
		lasts, m.calls.Load(), m.givenUp.Load(), m.uploads.Load(), m.downloads.Load(), m.handshakes.Load(), m.restarts)
	t.Logf("began with %+v, ended with %+v", begin, end)
	if end.sidecar > begin.sidecar+32<<20 || end.host > begin.host+32<<20 || end.threads > begin.threads+20 {
		t.Errorf("began with %+v, ended with %+v", begin, end)
	}
}

// mixed is the demo under a mixed load.
type mixed struct {
	*demo
	shared                                         string
	calls, givenUp, uploads, downloads, handshakes atomic.Int64
	restarts                                       int
	seq                                            atomic.Int64
}

// weight is what a process could leak: descriptors, threads, and memory, in which
// a goroutine that stays shows.
type weight struct {
	descriptors, threads int
	sidecar, host        int64 // bytes
}

func (m *mixed) weigh(t *testing.T) weight {
	t.Helper()
	_, sidecar := m.runningAt()
	host := m.cmd.Process.Pid
	w := weight{sidecar: statusBytes(sidecar, "VmRSS:"), host: statusBytes(host, "VmRSS:")}
	for _, pid := range []int{sidecar, host} {
		for dir, count := range map[string]*int{"fd": &w.descriptors, "task": &w.threads} {
			entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/%s", pid, dir))
			if err != nil {
				t.Skip("a process cannot be weighed here: ", err)
			}
			*count += len(entries)
		}
	}
	return w
}

// writeConfig edits what may be edited at any time.
func (m *mixed) writeConfig(t *testing.T, n int) {
	t.Helper()
	path := filepath.Join(m.dir, "a2mcp.json")
	text := fmt.Appendf(nil, "{\n  %q: %q,\n  \"auditMaxKB\": %d,\n  \"auditKeep\": 2\n}\n", "token", m.token, 10_000+n)
	if err := os.WriteFile(path+"~", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

func (m *mixed) share(t *testing.T) {
	t.Helper()
	if m.shared == "" {
		m.shared = t.TempDir()
	}
	if text, isError, err := m.tryCall(m.session(t), "xfer_share", fmt.Sprintf(`{"path":%q}`, m.shared)); err != nil || isError {
		t.Fatalf("sharing: %s, %v", text, err)
	}
}

// restart kills the sidecar and waits for the next.
func (m *mixed) restart(t *testing.T) {
	t.Helper()
	_, pid := m.runningAt()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	m.restarts++
	waitFor(t, func() bool {
		address, now := m.runningAt()
		resp, err := m.client.Get(m.url)
		if err == nil {
			resp.Body.Close()
		}
		return now != pid && address == m.url && err == nil
	})
}

// run puts the load on for a while.
func (m *mixed) run(t *testing.T, lasts time.Duration) {
	t.Helper()
	ends := time.Now().Add(lasts)
	var load sync.WaitGroup
	for range 6 {
		load.Go(func() {
			sid := m.session(t)
			m.handshakes.Add(1)
			for time.Now().Before(ends) {
				m.one(t, sid)
			}
			req, _ := http.NewRequest(http.MethodDelete, m.url, http.NoBody)
			req.Header.Set("Authorization", "Bearer "+m.token)
			req.Header.Set("mcp-session-id", sid)
			if resp, err := m.client.Do(req); err == nil {
				resp.Body.Close()
			}
		})
	}
	load.Wait()
}

// one is one thing that callers do.
func (m *mixed) one(t *testing.T, sid string) {
	n := m.seq.Add(1)
	switch dice := rand.IntN(100); {
	case dice < 70:
		m.calls.Add(1)
		want := strings.Repeat("x", 1<<rand.IntN(14)) + fmt.Sprint(n)
		if text, isError, err := m.tryCall(sid, "echo", fmt.Sprintf(`{"text":%q}`, want)); err != nil || isError || text != want {
			t.Errorf("echo: %.100s, %v", text, err)
		}
	case dice < 80: // given up, and cancelled by its id
		m.calls.Add(1)
		m.givenUp.Add(1)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		m.send(ctx, sid, fmt.Sprintf(`{"jsonrpc":"2.0","id":"n%d","method":"tools/call","params":{"name":"never"}}`, n))
		m.send(t.Context(), sid, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"n%d"}}`, n))
	case dice < 90:
		m.file(t, n)
	case dice < 95:
		m.session(t)
		m.handshakes.Add(1)
	default:
		m.send(t.Context(), sid, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"not_there"}}`)
		m.send(t.Context(), "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		m.send(t.Context(), sid, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	}
}

// send posts a message whose answer does not matter.
func (m *mixed) send(ctx context.Context, sid, body string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, strings.NewReader(body))
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+m.token)
	req.Header.Set("mcp-session-id", sid)
	if resp, err := m.client.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// file uploads a file, downloads it and takes it away behind the bridge's back.
func (m *mixed) file(t *testing.T, n int64) {
	name := fmt.Sprintf("f%d", n)
	want := bytes.Repeat([]byte(name), 1<<rand.IntN(15))
	transfer := func(method string, body []byte) (int, []byte) {
		req, err := http.NewRequest(method, m.url+"xfer/"+name, bytes.NewReader(body))
		if err != nil {
			return 0, nil
		}
		req.Header.Set("Authorization", "Bearer "+m.token)
		resp, err := m.client.Do(req)
		if err != nil {
			t.Errorf("%s: %v", method, err)
			return 0, nil
		}
		defer resp.Body.Close()
		data, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, data
	}
	if status, data := transfer(http.MethodPut, want); status != http.StatusCreated {
		t.Errorf("uploading: %d %s", status, data)
	}
	m.uploads.Add(1)
	if status, data := transfer(http.MethodGet, nil); status != http.StatusOK || !bytes.Equal(data, want) {
		t.Errorf("downloading: %d, %d bytes, want %d", status, len(data), len(want))
	}
	m.downloads.Add(1)
	os.Remove(filepath.Join(m.shared, name))
}
