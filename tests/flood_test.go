package tests

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/proto"
)

// soaking reports whether the long tests are wanted at their full length.
func soaking() bool { return os.Getenv("A2MCP_SOAK") != "" }

// dial opens a bare connection to the bridge.
func (b *liveBridge) dial(t *testing.T) net.Conn {
	t.Helper()
	u, err := url.Parse(b.url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// resident is the sidecar's memory in bytes; 0 where the system does not tell.
func (b *liveBridge) resident() int64 { return statusBytes(b.pid, "VmRSS:") }

// descriptors counts what the sidecar has open; -1 where the system does not tell.
func (b *liveBridge) descriptors() int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.pid))
	if err != nil {
		return -1
	}
	return len(entries)
}

// A4, A1: a flood of wrong tokens, 10,000 a second, is refused to the last one;
// the calls of those who have the right one go on, the log has nothing of it,
// stderr every fiftieth, and memory stays.
func TestSoakBadTokens(t *testing.T) {
	const rate, tick, connections = 10_000, 10 * time.Millisecond, 8
	seconds := 1
	if soaking() {
		seconds = 10
	}
	b := startLive(t, `{"auditMaxKB":100000}`, echoArguments)
	sid := b.session(t)
	one := "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong-wrong-wrong-wrong-wrong-wrong-wrong\r\nContent-Length: 2\r\n\r\n{}"
	batch := []byte(strings.Repeat(one, int(rate*tick/time.Second)/connections+1))
	size := len(batch) / len(one)
	before := b.resident()
	ctx, stop := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
	defer stop()
	var refused, sent atomic.Int64
	var flood sync.WaitGroup
	for range connections {
		conn := b.dial(t)
		flood.Go(func() {
			answers := bufio.NewReader(conn)
			pace := time.NewTicker(tick)
			defer pace.Stop()
			for ctx.Err() == nil {
				<-pace.C
				if _, err := conn.Write(batch); err != nil {
					t.Error(err)
					return
				}
				sent.Add(int64(size))
				for range size {
					resp, err := http.ReadResponse(answers, nil)
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					if resp.StatusCode == http.StatusUnauthorized {
						refused.Add(1)
					}
				}
			}
		})
	}
	var took []time.Duration
	for ctx.Err() == nil {
		began := time.Now()
		if err := b.echo(sid, "meanwhile"); err != nil {
			t.Error(err)
		}
		took = append(took, time.Since(began))
	}
	flood.Wait()
	slices.Sort(took)
	t.Logf("%d refused in %d s; meanwhile %d calls, median %v, longest %v; memory grew by %d KiB",
		refused.Load(), seconds, len(took), took[len(took)/2], took[len(took)-1], (b.resident()-before)>>10)
	if refused.Load() != sent.Load() {
		t.Errorf("%d of %d refused", refused.Load(), sent.Load())
	}
	// A line on stderr may come after the answers that made it.
	waitFor(t, func() bool {
		return int64(strings.Count(b.stderr.String(), "unauthorized attempt(s)")) >= refused.Load()/50+1
	})
	if told, want := int64(strings.Count(b.stderr.String(), "unauthorized attempt(s)")), refused.Load()/50+1; told != want {
		t.Errorf("stderr told %d times, want %d", told, want)
	}
	if starts, _ := readRecords(t, b.dir); len(starts) != len(took) {
		t.Errorf("%d records of %d calls", len(starts), len(took))
	}
	if grown := b.resident() - before; grown > 32<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
}

// H7, A1: 500 connections that send slowly, headers or the body of a request with
// a wrong token, hold up nobody. Whoever has no token loses the connection: after
// 2 s, with the refusal, if its body does not come; after 30 s if its header does
// not.
func TestSoakSlowLoris(t *testing.T) {
	const connections = 500
	b := startLive(t, `{}`, echoArguments)
	sid := b.session(t)
	before := b.descriptors()
	began := time.Now()
	var headers, bodies []net.Conn
	for n := range connections {
		conn := b.dial(t)
		if n%2 == 0 {
			headers = append(headers, conn)
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
		} else {
			bodies = append(bodies, conn)
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
		}
		drip(conn)
	}
	var took []time.Duration
	for range 200 {
		began := time.Now()
		if err := b.echo(sid, "meanwhile"); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("beside %d slow connections: median %v, longest %v; %d descriptors, before %d", connections, took[100], took[199], b.descriptors(), before)
	closed := func(conns []net.Conn, within time.Duration) {
		for _, conn := range conns {
			_ = conn.SetReadDeadline(began.Add(within))
			if data, err := io.ReadAll(conn); os.IsTimeout(err) || &conns[0] == &bodies[0] && !bytes.Contains(data, []byte("401 Unauthorized")) {
				t.Fatalf("a slow connection after %v: %v, %q", within, err, data)
			}
		}
		t.Logf("%d slow connections are closed after %v", len(conns), time.Since(began))
	}
	closed(bodies, 10*time.Second)
	if !soaking() {
		return
	}
	closed(headers, 40*time.Second)
	waitFor(t, func() bool { return b.descriptors() <= before+2 })
}

// drip sends a byte a second for as long as somebody takes it.
func drip(conn net.Conn) {
	go func() {
		for {
			time.Sleep(time.Second)
			if _, err := conn.Write([]byte("x")); err != nil {
				return
			}
		}
	}()
}

// M6, C07: thousands of calls that pend: each costs little memory, others go on,
// all are answered, and what they took is given back.
func TestSoakPendingCalls(t *testing.T) {
	pending := 1000
	if soaking() {
		pending = 10_000
	}
	release := make(chan struct{})
	b := startLive(t, `{"auditMaxKB":100000}`, func(_ context.Context, req *hostrpc.Request) {
		if req.Method == proto.SidecarToolsCall && bytes.Contains(req.Params, []byte(`"name":"pend"`)) {
			go func() {
				<-release
				_ = req.Reply([]byte(`{"outcome":"done","content":[],"isError":false}`))
			}()
			return
		}
		echoArguments(context.Background(), req)
	})
	sid := b.session(t)
	before, open := b.resident(), b.descriptors()
	call := []byte(fmt.Sprintf("POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nmcp-session-id: %s\r\nContent-Length: %%d\r\n\r\n%%s", b.token, sid))
	var conns []net.Conn
	for n := range pending {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"pend","arguments":{"n":%d}}}`, n, n)
		conn := b.dial(t)
		if _, err := fmt.Fprintf(conn, string(call), len(body), body); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	want := fmt.Sprintf("calls=%d ", pending)
	waitFor(t, func() bool { return strings.Contains(b.command("status"), want) })
	grown := b.resident() - before
	t.Logf("%d pending calls take %d KiB, %.1f KiB each", pending, grown>>10, float64(grown)/1024/float64(pending))
	if grown/int64(pending) > 64<<10 {
		t.Errorf("a pending call takes %d KiB", grown/int64(pending)>>10)
	}
	began := time.Now()
	for range 100 {
		if err := b.echo(sid, "meanwhile"); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("100 calls beside them took %v", time.Since(began))
	close(release)
	for n, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("call %d: %v, %v", n, resp, err)
		}
		conn.Close()
	}
	waitFor(t, func() bool { return b.descriptors() <= open+2 })
	if starts, dones := readRecords(t, b.dir); len(starts) != pending+100 || len(dones) != len(starts) {
		t.Errorf("%d starts, %d dones", len(starts), len(dones))
	}
}
