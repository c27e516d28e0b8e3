package tests

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/proto"
)

// liveBridge is the built binary with a host within the test.
type liveBridge struct {
	url, token, dir string
	pid             int
	client          *http.Client
	stderr          *lockedText
	command         func(words string) string // types /a2mcp and returns what it says
}

// startLive starts the binary on a folder of its own, with a configuration.
func startLive(t *testing.T, config string, handle hostrpc.Handler) *liveBridge {
	t.Helper()
	return startLiveIn(t, t.TempDir(), config, handle, func(*exec.Cmd) {})
}

// startLiveIn starts the binary on a folder; prepare may change how.
func startLiveIn(t *testing.T, dir, config string, handle hostrpc.Handler, prepare func(*exec.Cmd)) *liveBridge {
	t.Helper()
	b := &liveBridge{dir: dir, stderr: &lockedText{}, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	if err := os.WriteFile(filepath.Join(b.dir, "a2mcp.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary(t), "sidecar")
	cmd.Env = []string{}
	cmd.Stderr = b.stderr
	prepare(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = outW
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	outW.Close()
	b.pid = cmd.Process.Pid
	conn := hostrpc.New(outR, stdin, handle, hostrpc.Options{Side: "h"})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = conn.Run(context.Background())
	}()
	t.Cleanup(func() {
		b.client.CloseIdleConnections()
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the sidecar ended with %v\n%s", err, b.stderr)
		}
		<-ended
	})
	b.url, b.token = startSession(t, conn, b.dir, b.stderr)
	b.command = func(words string) string {
		raw, err := conn.Call(context.Background(), proto.HostCommand, proto.Encode(proto.OperatorCommand{Name: "a2mcp", Args: words}))
		if err != nil {
			t.Errorf("/a2mcp %s: %v", words, err)
		}
		text, _ := proto.Text(proto.Member(raw, "text"))
		return text
	}
	return b
}

// echo makes one call of echoArguments and reports whether it came back right.
func (b *liveBridge) echo(sid, text string) error {
	resp, data, err := b.post(sid, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":%q}}}`, text)))
	if err != nil {
		return err
	}
	if want := fmt.Sprintf(`"text":%q}],"isError":false`, text); resp.StatusCode != http.StatusOK || !strings.Contains(string(data), want) {
		return fmt.Errorf("%s: %s", resp.Status, data)
	}
	return nil
}

func (b *liveBridge) post(sid string, body io.Reader) (*http.Response, []byte, error) {
	req, err := http.NewRequest(http.MethodPost, b.url, body)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	if sid != "" {
		req.Header.Set(proto.SessionHeader, sid)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp, data, err
}

func (b *liveBridge) session(t *testing.T) string {
	t.Helper()
	resp, _, err := b.post("", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize"}`))
	if err != nil {
		t.Fatal(err)
	}
	return resp.Header.Get(proto.SessionHeader)
}

// echoArguments is a host whose every tool returns the member text of its
// arguments.
func echoArguments(_ context.Context, req *hostrpc.Request) {
	switch req.Method {
	case proto.SidecarHostState:
		_ = req.Reply([]byte(`{"mains":1}`))
	case proto.SidecarToolsCall:
		text := proto.Member(proto.Member(req.Params, "arguments"), "text")
		_ = req.Reply([]byte(`{"outcome":"done","content":[{"type":"text","text":`), text, []byte(`}],"isError":false}`))
	}
}

// H14, H20, L1: 2,000 concurrent calls over 8 sessions that use the same ids get
// their own answers, and leave 4,000 records in pairs.
func TestManyConcurrentCalls(t *testing.T) {
	b := startLive(t, `{"auditMaxKB":100000}`, echoArguments)
	var all sync.WaitGroup
	limit := make(chan struct{}, 200) // connections, not calls: the file descriptors of a test are few
	for s := range 8 {
		sid := b.session(t)
		for i := range 250 {
			all.Go(func() {
				limit <- struct{}{}
				defer func() { <-limit }()
				want := fmt.Sprintf("%d/%d", s, i)
				_, data, err := b.post(sid, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":%q}}}`, i, want)))
				answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":%q}],"isError":false}}`, i, want)
				if err != nil || string(data) != answer {
					t.Errorf("got %s, %v; want %s", data, err, answer)
				}
			})
		}
	}
	all.Wait()
	starts, dones := readRecords(t, b.dir)
	if len(starts) != 2000 || len(dones) != 2000 {
		t.Errorf("%d starts, %d dones", len(starts), len(dones))
	}
	for id := range starts {
		if !dones[id] {
			t.Errorf("%s has no done", id)
		}
	}
}

// L4: concurrent calls across a rotation lose no record.
func TestCallsAcrossARotation(t *testing.T) {
	for _, calls := range []int{60, 600} {
		b := startLive(t, `{}`, echoArguments)
		log := filepath.Join(b.dir, "a2mcp.log")
		filler := bytes.Repeat([]byte(`{"id":"filler","phase":"start"}`+"\n"), 512<<10/32)
		if err := os.WriteFile(log, filler[:512<<10-32*6], 0o600); err != nil {
			t.Fatal(err)
		}
		sid := b.session(t)
		var all sync.WaitGroup
		limit := make(chan struct{}, 100)
		for i := range calls {
			all.Go(func() {
				limit <- struct{}{}
				defer func() { <-limit }()
				if _, _, err := b.post(sid, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}`, i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		starts, dones := readRecords(t, b.dir)
		if delete(starts, "filler"); len(starts) != calls || len(dones) != calls {
			t.Errorf("%d calls: %d starts, %d dones", calls, len(starts), len(dones))
		}
		if _, err := os.Stat(log + ".1"); err != nil {
			t.Error("nothing was rotated: the test does not test")
		}
	}
}

// H3: one byte over the limit, announced or not, is a readable 413 and nothing is
// kept; H09.
func TestBodyOverTheLimit(t *testing.T) {
	size := 1 << 20
	if os.Getenv("A2MCP_SOAK") != "" {
		size = 128 << 20
	}
	b := startLive(t, fmt.Sprintf(`{"maxBody":%d}`, size), echoArguments)
	sid := b.session(t)
	for name, body := range map[string]io.Reader{
		"announced": strings.NewReader(strings.Repeat("x", size+1)),
		"chunked":   io.MultiReader(strings.NewReader(strings.Repeat("x", size)), strings.NewReader("x")),
	} {
		resp, data, err := b.post(sid, body)
		if err != nil || resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(data), "request body too large") {
			t.Errorf("%s: %v, %v, %s", name, resp, err, data)
		}
	}
	pad := size - len(`{"jsonrpc":"2.0","id":1,"method":"ping","params":""}`)
	resp, data, err := b.post(sid, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping","params":"`+strings.Repeat("x", pad)+`"}`))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("a body of exactly the limit: %v, %v, %s", resp, err, data)
	}
	if starts, _ := readRecords(t, b.dir); len(starts) != 0 {
		t.Errorf("%d records of refused bodies", len(starts))
	}
}

// H09: bodies of 1, 10 and 100 MiB pass through whole, there and back; a hundred
// take less than four times their size.
func TestSoakLargeBodies(t *testing.T) {
	sizes := []int{1}
	if os.Getenv("A2MCP_SOAK") != "" {
		sizes = []int{1, 10, 100}
	}
	for _, mib := range sizes {
		b := startLive(t, `{}`, echoArguments)
		sid := b.session(t)
		before := peakMemory(t, b.pid)
		text := bytes.Repeat([]byte("<0123456789abcde"), mib<<20/16)
		body := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"`),
			bytes.NewReader(text), strings.NewReader(`"}}}`))
		resp, data, err := b.post(sid, body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d MiB: %v, %v", mib, resp, err)
		}
		data = bytes.TrimSuffix(bytes.TrimPrefix(data, []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"`)), []byte(`"}],"isError":false}}`))
		if sha256.Sum256(data) != sha256.Sum256(text) {
			t.Errorf("%d MiB: came back as %d bytes that differ", mib, len(data))
		}
		grown := peakMemory(t, b.pid) - before
		t.Logf("%d MiB both ways: peak memory grew by %d MiB", mib, grown>>20)
		if limit := int64(4 * mib << 20); mib >= 10 && grown > limit {
			t.Errorf("%d MiB took %d MiB of memory, want under %d", mib, grown>>20, limit>>20)
		}
	}
}

// peakMemory is the peak resident size of a process in bytes, 0 where the system
// does not tell.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	return statusBytes(pid, "VmHWM:")
}

// statusBytes is a field of /proc/PID/status that is told in kB, in bytes; 0
// where the system does not tell.
func statusBytes(pid int, field string) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// H4, C07: GET is refused at once, and ping answered, while a hundred calls pend
// that nobody answers.
func TestPendingCallsHoldNobodyUp(t *testing.T) {
	release := make(chan struct{})
	b := startLive(t, `{}`, func(_ context.Context, req *hostrpc.Request) {
		if req.Method == proto.SidecarToolsCall {
			go func() {
				<-release
				_ = req.Reply([]byte(`{"outcome":"done","content":[],"isError":false}`))
			}()
			return
		}
		echoArguments(context.Background(), req)
	})
	sid := b.session(t)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			if _, _, err := b.post(sid, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"never"}}`, i))); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, func() bool { starts, _ := readRecords(t, b.dir); return len(starts) == 100 })
	for _, path := range []string{"", "mcp", "anything"} {
		began := time.Now()
		resp, err := b.client.Get(b.url + path)
		if err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
			t.Fatalf("GET /%s: %v, %v", path, resp, err)
		}
		resp.Body.Close()
		if took := time.Since(began); took > time.Second {
			t.Errorf("GET /%s took %v", path, took)
		}
	}
	if _, data, err := b.post(sid, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)); err != nil || !json.Valid(data) {
		t.Errorf("ping: %s, %v", data, err)
	}
	close(release)
	all.Wait()
}

// waitFor polls a condition that another process brings about.
func waitFor(t *testing.T, met func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !met(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within 20 s")
		}
	}
}

// S3, H23: thousands of handshakes without a DELETE leave 64 sessions and flat
// memory.
func TestSoakHandshakes(t *testing.T) {
	count := 500
	if os.Getenv("A2MCP_SOAK") != "" {
		count = 20_000
	}
	b := startLive(t, `{}`, echoArguments)
	for range 300 {
		b.session(t)
	}
	before := peakMemory(t, b.pid)
	for range count {
		b.session(t)
	}
	if grown := peakMemory(t, b.pid) - before; grown > 16<<20 {
		t.Errorf("%d handshakes took %d MiB", count, grown>>20)
	}
}

// H17, M11: callers that give up leave nothing behind: the calls run to their end
// and are recorded, descriptors and memory come back.
func TestCallersThatGiveUp(t *testing.T) {
	release := make(chan struct{})
	b := startLive(t, `{}`, func(_ context.Context, req *hostrpc.Request) {
		if req.Method == proto.SidecarToolsCall && strings.Contains(string(req.Params), "slow") {
			go func() {
				<-release
				_ = req.Reply([]byte(`{"outcome":"done","content":[],"isError":false}`))
			}()
			return
		}
		echoArguments(context.Background(), req)
	})
	sid := b.session(t)
	descriptors := func() int {
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.pid))
		if err != nil {
			t.Skip("descriptors cannot be counted here: ", err)
		}
		return len(entries)
	}
	before := descriptors()
	var all sync.WaitGroup
	for i := range 500 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url,
				strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"slow"}}`, i)))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Authorization", "Bearer "+b.token)
			req.Header.Set(proto.SessionHeader, sid)
			if resp, err := b.client.Do(req); err == nil {
				resp.Body.Close()
				t.Error("a call that nobody answers was answered")
			}
		})
	}
	all.Wait()
	close(release) // some may only begin now: their callers had gone before their turn came
	waitFor(t, func() bool {
		starts, dones := readRecords(t, b.dir)
		return len(starts) > 0 && len(dones) == len(starts)
	})
	// A connection that came about after its caller had gone is kept by the client.
	waitFor(t, func() bool { b.client.CloseIdleConnections(); return descriptors() <= before+2 })
	data, err := os.ReadFile(filepath.Join(b.dir, "a2mcp.log"))
	if err != nil || strings.Contains(string(data), `"isError":true`) {
		t.Errorf("a call that nobody waited for did not end as it did: %v", err)
	}
	if resp, _, err := b.post(sid, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"x"}}}`)); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("the next call: %v, %v", resp, err)
	}
}

// P1: from the start of the process to the announced port, and what an idle
// bridge weighs. The figures are wide of what is wanted (30 ms, 15 MB), so that
// only a mistake breaks them; the measured ones are in the log.
func TestStartIsQuickAndSmall(t *testing.T) {
	binary(t)
	began := time.Now()
	b := startLive(t, `{}`, echoArguments)
	took := time.Since(began)
	resident := int64(0)
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", b.pid))
	if fields := strings.Fields(string(data)); len(fields) > 1 {
		pages, _ := strconv.ParseInt(fields[1], 10, 64)
		resident = pages * int64(os.Getpagesize())
	}
	t.Logf("listening after %v, resident %d KiB", took, resident>>10)
	if took > time.Second || resident > 40<<20 {
		t.Errorf("listening after %v, resident %d KiB", took, resident>>10)
	}
}
