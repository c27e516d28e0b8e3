package hostrpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// rawEnd is a connection whose other end is a test that writes and reads lines.
type rawEnd struct {
	conn *Conn
	in   *io.PipeWriter // to the Conn
	out  *bufio.Reader  // from it
	log  *lockedBuffer
	end  chan error
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newRawEnd(t *testing.T, handler Handler, opt Options) *rawEnd {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	e := &rawEnd{in: inW, out: bufio.NewReader(outR), log: &lockedBuffer{}, end: make(chan error, 1)}
	opt.Side, opt.Log = "s", slog.New(slog.NewTextHandler(e.log, nil))
	e.conn = New(inR, outW, handler, opt)
	go func() {
		e.end <- e.conn.Run(context.Background())
		outW.Close()
	}()
	t.Cleanup(func() {
		inW.Close()
		go io.Copy(io.Discard, outR)
		if err := <-e.end; err != nil && !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Run: %v", err)
		}
	})
	return e
}

func (e *rawEnd) send(t *testing.T, lines string) {
	t.Helper()
	if _, err := io.WriteString(e.in, lines); err != nil {
		t.Fatal(err)
	}
}

func (e *rawEnd) line(t *testing.T) string {
	t.Helper()
	line, err := e.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

func echoParams(_ context.Context, req *Request) { _ = req.Reply(req.Params) }

// R04, H26: whatever is no message is logged and skipped; the next one is read.
func TestStrayLinesAreSkipped(t *testing.T) {
	e := newRawEnd(t, echoParams, Options{})
	for i, stray := range []string{
		"garbage", "[]", "[1]", `[{"jsonrpc":"2.0","id":"h9","method":"x"},{"jsonrpc":"2.0","id":"s1","result":1}]`,
		"Content-Length: 12\r\n\r", `{"jsonrpc":"2.0"`, `{"jsonrpc":"2.0","id":{},"method":"x"}`, `{"jsonrpc":"2.0","id":"h"}`,
		`null`, `7`, "\x00", `{"jsonrpc":"2.0","id":"s99","result":{}}`, "",
	} {
		e.send(t, stray+"\n"+fmt.Sprintf(`{"jsonrpc":"2.0","id":"h%d","method":"echo","params":{"a":%d}}`, i, i)+"\n")
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":"h%d","result":{"a":%d}}`, i, i)
		if got := e.line(t); got != want {
			t.Fatalf("after %q: got %s, want %s", stray, got, want)
		}
	}
	if log := e.log.String(); !strings.Contains(log, "garbage") || strings.Contains(log, "\x00") {
		t.Errorf("log: %s", log)
	}
}

// M7: params and results keep their bytes, but for line breaks, which would end
// the line.
func TestForeignBytesStayAsTheyAre(t *testing.T) {
	e := newRawEnd(t, echoParams, Options{})
	for _, raw := range []string{
		`{"z":1e2,"a":9007199254740993,"b":"<>&\u003c\ud800","z":-0.0}`, `"` + strings.Repeat("<", 300_000) + `"`, `[]`, `null`,
	} {
		e.send(t, `{"jsonrpc":"2.0","id":"h1","method":"echo","params":`+raw+"}\n")
		if got, want := e.line(t), `{"jsonrpc":"2.0","id":"h1","result":`+raw+`}`; got != want {
			t.Errorf("got %.200s\nwant %.200s", got, want)
		}
	}
	answer := make(chan string, 1)
	go func() {
		raw, err := e.conn.Call(context.Background(), "m", []byte("{\n \"a\":\r\n[1,\n2]}"))
		answer <- fmt.Sprint(string(raw), err)
	}()
	if got, want := e.line(t), `{"jsonrpc":"2.0","id":"s1","method":"m","params":{  "a":  [1, 2]}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	e.send(t, `{"jsonrpc":"2.0","result":{"x":"<>&"},"id":"s1"}`+"\n")
	if got := <-answer; got != `{"x":"<>&"}<nil>` {
		t.Errorf("answer %s", got)
	}
}

// HOST.md, framing: too long a line is answered where its id is known, in both
// directions, and costs nothing else.
func TestOverlongLines(t *testing.T) {
	e := newRawEnd(t, echoParams, Options{MaxLine: 100_000})
	long := strings.Repeat("x", 200_000)
	e.send(t, `{"jsonrpc":"2.0","id":"h1","method":"echo","params":"`+long+`"}`+"\n")
	if got := e.line(t); !strings.Contains(got, `"id":"h1"`) || !strings.Contains(got, "-32600") {
		t.Errorf("a long request: %.200s", got)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := e.conn.Call(context.Background(), "m")
		ended <- err
	}()
	e.line(t)
	e.send(t, `{"jsonrpc":"2.0","id":"s1","result":"`+long+`"}`+"\n")
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "longer") {
		t.Errorf("a long result: %v", err)
	}
	if _, err := e.conn.Call(context.Background(), "m", []byte(`"`+long+`"`)); !errors.Is(err, errTooLong) {
		t.Errorf("long params: %v", err)
	}
	e.send(t, long+"\n"+`{"jsonrpc":"2.0","id":"h2","method":"echo","params":1}`+"\n")
	if got := e.line(t); got != `{"jsonrpc":"2.0","id":"h2","result":1}` {
		t.Errorf("after a long line: %s", got)
	}
}

// HOST.md, framing: a peer that stops reading costs the calls to it; what it
// sends is still handled, and what has not left is taken back.
func TestPeerThatStopsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handled := make(chan string, 1)
		e := newRawEnd(t, func(_ context.Context, req *Request) { handled <- req.Method }, Options{MaxQueue: 1000})
		params := []byte(`"` + strings.Repeat("x", 400) + `"`)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		results := make(chan error, 3)
		for range 3 { // one is being written, one waits, one finds no room
			go func() {
				_, err := e.conn.Call(ctx, "m", params)
				results <- err
			}()
			synctest.Wait()
		}
		if err := <-results; !errors.Is(err, ErrQueueFull) {
			t.Errorf("the third call: %v, want ErrQueueFull", err)
		}
		e.send(t, `{"jsonrpc":"2.0","method":"note"}`+"\n")
		if got := <-handled; got != "note" {
			t.Errorf("handled %s", got)
		}
		for range 2 {
			if err := <-results; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a call that waited: %v", err)
			}
		}
		if got := e.line(t); !strings.Contains(got, `"s1"`) {
			t.Errorf("first line %s", got)
		}
		if _, err := e.conn.Notify("last"); err != nil {
			t.Error(err)
		}
		if got := e.line(t); !strings.Contains(got, "last") {
			t.Errorf("a call that was given up left: %.80s", got)
		}
	})
}

// HOST.md, framing: notifications are handled in order, requests answered in any.
func TestOrder(t *testing.T) {
	var seen []string
	var mu sync.Mutex
	e := newRawEnd(t, func(_ context.Context, req *Request) {
		if req.IsNotification() {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, string(req.Params))
			return
		}
		go func() { _ = req.Reply(req.Params) }()
	}, Options{})
	var lines strings.Builder
	for i := range 500 {
		fmt.Fprintf(&lines, `{"jsonrpc":"2.0","method":"n","params":%d}`+"\n", i)
	}
	e.send(t, lines.String()+`{"jsonrpc":"2.0","id":"h1","method":"r","params":1}`+"\n")
	e.line(t)
	mu.Lock()
	defer mu.Unlock()
	for i, got := range seen {
		if got != fmt.Sprint(i) {
			t.Fatalf("number %d was %s", i, got)
		}
	}
	if len(seen) != 500 {
		t.Errorf("%d notifications", len(seen))
	}
}

// H14, H20: thousands of calls in both directions at once get their own answers.
func TestManyCallsBothWays(t *testing.T) {
	aR, bW := io.Pipe()
	bR, aW := io.Pipe()
	later := func(_ context.Context, req *Request) { go func() { _ = req.Reply(req.Params) }() }
	a, b := New(aR, aW, later, Options{Side: "s"}), New(bR, bW, later, Options{Side: "h"})
	var ends, calls sync.WaitGroup
	ends.Go(func() { _ = a.Run(t.Context()) })
	ends.Go(func() { _ = b.Run(t.Context()) })
	for i := range 2000 {
		for _, c := range []*Conn{a, b} {
			calls.Go(func() {
				want := fmt.Sprintf(`{"n":%d}`, i)
				if got, err := c.Call(t.Context(), "m", []byte(want)); err != nil || string(got) != want {
					t.Errorf("got %s, %v, want %s", got, err, want)
				}
			})
		}
	}
	calls.Wait()
	aR.Close()
	bR.Close()
	ends.Wait()
	if len(a.calls)+len(b.calls) != 0 {
		t.Errorf("%d calls are left over", len(a.calls)+len(b.calls))
	}
}

// P6: the end of input fails what is pending; errors keep code and text.
func TestEndAndErrors(t *testing.T) {
	e := newRawEnd(t, func(_ context.Context, req *Request) { _ = req.Fail(-32601, "no <such> method") }, Options{})
	e.send(t, `{"jsonrpc":"2.0","id":"h1","method":"x"}`+"\n")
	if got := e.line(t); got != `{"jsonrpc":"2.0","id":"h1","error":{"code":-32601,"message":"no <such> method"}}` {
		t.Errorf("refusal %s", got)
	}
	ended := make(chan error, 2)
	call := func() {
		_, err := e.conn.Call(context.Background(), "m")
		ended <- err
	}
	go call()
	e.line(t)
	e.send(t, `{"jsonrpc":"2.0","id":"s1","error":{"code":-32001,"message":"skew"}}`+"\n")
	var fault *Error
	if err := <-ended; !errors.As(err, &fault) || fault.Code != -32001 || fault.Message != "skew" {
		t.Errorf("got %v", err)
	}
	go call()
	e.line(t)
	e.in.Close()
	if err := <-ended; !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v, want ErrClosed", err)
	}
	if _, err := e.conn.Notify("late"); !errors.Is(err, ErrClosed) {
		t.Errorf("a notification after the end: %v", err)
	}
}

// M13: what fits the pipe of a peer that does not read is no sign of life; a byte
// from it is, and so is a large message that moves on.
func TestLastSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newRawEnd(t, func(context.Context, *Request) {}, Options{})
		synctest.Wait()
		began := e.conn.LastSeen()
		time.Sleep(time.Minute)
		if _, err := e.conn.Notify("small"); err != nil {
			t.Fatal(err)
		}
		e.line(t)
		if !e.conn.LastSeen().Equal(began) {
			t.Error("a small message to the host counts as life")
		}
		e.send(t, "{")
		synctest.Wait()
		if !e.conn.LastSeen().Equal(time.Now()) {
			t.Error("a byte from the host does not count as life")
		}
		time.Sleep(time.Minute)
		if _, err := e.conn.Notify("large", []byte(`"`+strings.Repeat("x", 3<<20)+`"`)); err != nil {
			t.Fatal(err)
		}
		e.line(t)
		if !e.conn.LastSeen().Equal(time.Now()) {
			t.Error("a large message that moves does not count as life")
		}
	})
}

// H09: a large value is not copied on the way out, and once on the way in.
func TestLargeValuesAreCopiedOnce(t *testing.T) {
	const size = 8 << 20
	params := []byte(`"` + strings.Repeat("<", size) + `"`)
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		answer := func(_ context.Context, req *Request) { _ = req.Reply(proto.Member(req.Params, "a")) }
		c := benchPair(b, pipes["io.Pipe"], answer)
		for b.Loop() {
			got, err := c.Call(context.Background(), "m", []byte(`{"a":`), params, []byte(`}`))
			if err != nil || len(got) != len(params) {
				b.Fatal(err)
			}
		}
	})
	// Two ends read it: each gathers the buffers of the line and joins them.
	if most := int64(4*size + size/2); result.AllocedBytesPerOp() > most {
		t.Errorf("%d bytes allocated for %d each way, want at most %d", result.AllocedBytesPerOp(), size, most)
	}
}

// FuzzLines: no line stops the next one from being read (R04).
func FuzzLines(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":"s1","result":{}}`))
	f.Add([]byte(`{"method":"x","id":[1]}`))
	f.Add([]byte("\xff\x00[{}]"))
	f.Fuzz(func(t *testing.T, stray []byte) {
		in := append(bytes.ReplaceAll(stray, []byte("\n"), nil), "\n"+`{"jsonrpc":"2.0","method":"marker-of-the-test"}`+"\n"...)
		var last string
		c := New(bytes.NewReader(in), io.Discard, func(_ context.Context, req *Request) { last = req.Method }, Options{Side: "s"})
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if last != "marker-of-the-test" {
			t.Fatalf("%q swallowed the next line", stray)
		}
	})
}
