// Package hostrpc is the stdio connection between a host and its sidecar: JSON-RPC
// 2.0, one message a line, requests in both directions (proto/HOST.md). Either
// end uses the same [Conn]; [Host] is the sidecar's typed view of the other end.
//
// Requests, ids and pending calls are github.com/sourcegraph/jsonrpc2's. What it
// would decode and encode again (params and results, which hold foreign JSON of
// any size) never passes through it: the stream takes those members out of a
// line before the library sees it and puts them back on the way out, so their
// bytes are neither changed nor copied.
//
// Goroutines: Run starts one that writes and, inside the library, one that
// reads. The reader calls the Handler inline, in the order of the lines, so a
// handler that has something to wait for starts its own goroutine. The writer
// takes whole messages from a queue that is bounded in bytes: a peer that stops
// reading fails the calls to it and holds up nobody else.
//
// Order of events: Run opens the connection; a line that is no message is logged
// and skipped; end of input ends Run, failing every call that is still pending
// with ErrClosed.
package hostrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/a2mcp/a2mcp/proto"
)

// lastWords is how long what is still queued may take to leave once the
// connection has ended.
const lastWords = time.Second

// ErrClosed is what calls end with when the other end is gone.
var ErrClosed = errors.New("the connection to the host is closed")

// Error is an error response of the other end, or one to send to it.
type Error struct {
	Code    int64
	Message string
}

func (e *Error) Error() string { return e.Message }

// Handler takes one request or notification of the other end. It is called in
// the order the lines came and must not block; a Request may be answered later
// and from any goroutine. ctx ends with the connection.
type Handler func(ctx context.Context, req *Request)

// Options of a Conn.
type Options struct {
	// Side is the prefix of the ids of this end's requests: "s" for the sidecar,
	// "h" for the host.
	Side string
	// Log takes the lines that are no message. Nil discards them.
	Log *slog.Logger
	// MaxQueue bounds what waits to be written, in bytes. Default: proto.MaxLine.
	MaxQueue int
	// MaxLine bounds the length of a line. Default: proto.MaxLine.
	MaxLine int
}

// Conn is one end of the channel. Its methods may be used from any goroutine;
// before Run has opened the connection they wait for it.
type Conn struct {
	in      io.Reader
	out     io.Writer
	handler Handler
	opt     Options

	opened chan struct{} // closed once rpc is set
	rpc    *jsonrpc2.Conn
	stream *stream
	box    *outbox
	seq    atomic.Uint64
	seen   atomic.Int64 // time of the last sign of life, UnixNano

	mu    sync.Mutex // held around handing a message to the library
	calls map[string]*call
}

// call is a request of this end that waits for its response.
type call struct {
	result []byte // set by the reader before the library wakes the waiter
}

// New makes a Conn that reads lines from in and writes lines to out.
func New(in io.Reader, out io.Writer, handler Handler, opt Options) *Conn {
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.MaxQueue == 0 {
		opt.MaxQueue = proto.MaxLine
	}
	if opt.MaxLine == 0 {
		opt.MaxLine = proto.MaxLine
	}
	c := &Conn{in: in, out: out, handler: handler, opt: opt, opened: make(chan struct{}), calls: map[string]*call{}}
	c.box = newOutbox(opt.MaxQueue, c.alive)
	c.stream = newStream(c)
	return c
}

// Run serves the connection until the input ends, the output breaks or ctx
// does. The end of input is not an error. Readers of in are not interrupted: the
// owner closes in where that matters.
func (c *Conn) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.alive()
	written := make(chan error, 1)
	go func() {
		err := c.box.run(c.out)
		cancel() // an output that broke ends the connection too
		written <- err
	}()
	c.rpc = jsonrpc2.NewConn(ctx, c.stream, libHandler{c}, jsonrpc2.SetLogger(libLogger{c.opt.Log}))
	close(c.opened)
	<-c.rpc.DisconnectNotify()
	c.box.close()
	select {
	case err := <-written:
		return err
	case <-time.After(lastWords):
		// The other end neither reads nor has gone. Closing ends the writer where
		// the operating system allows it.
		if out, ok := c.out.(io.Closer); ok {
			_ = out.Close()
		}
		return nil
	}
}

// Call sends a request and returns the raw result. It ends with ctx, with the
// connection (ErrClosed) or with the other end's error (*Error); a request that
// has not left when ctx ends is taken back.
func (c *Conn) Call(ctx context.Context, method string, params ...[]byte) ([]byte, error) {
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	id := c.opt.Side + strconv.FormatUint(c.seq.Add(1), 10)
	pending := &call{}
	msg := request(id, method, params)

	c.mu.Lock()
	c.calls[id] = pending
	c.stream.next = msg
	wait, err := c.rpc.DispatchCall(ctx, method, nil, jsonrpc2.PickID(jsonrpc2.ID{Str: id, IsString: true}))
	c.mu.Unlock()

	if err == nil {
		err = wait.Wait(ctx, nil)
	}
	c.mu.Lock()
	delete(c.calls, id)
	c.mu.Unlock()
	if err != nil && ctx.Err() != nil {
		c.box.drop(msg)
	}
	return pending.result, c.translate(err)
}

// Notify queues a notification. The channel is closed once it is in the pipe,
// or will never be.
func (c *Conn) Notify(method string, params ...[]byte) (written <-chan struct{}, err error) {
	msg := request("", method, params)
	msg.written = make(chan struct{})
	select {
	case <-c.opened:
	default:
		return nil, ErrClosed // nothing is announced to a host that is not there yet
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stream.next = msg
	if err := c.rpc.Notify(context.Background(), method, nil); err != nil {
		return nil, c.translate(err)
	}
	return msg.written, nil
}

// LastSeen is when the other end last gave a sign of life: a byte came from it,
// or a large message to it moved on (M13).
func (c *Conn) LastSeen() time.Time { return time.Unix(0, c.seen.Load()) }

func (c *Conn) alive() { c.seen.Store(time.Now().UnixNano()) }

func (c *Conn) ready(ctx context.Context) error {
	select {
	case <-c.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Conn) translate(err error) error {
	var rpcErr *jsonrpc2.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jsonrpc2.ErrClosed):
		return ErrClosed
	case errors.As(err, &rpcErr):
		return &Error{Code: rpcErr.Code, Message: rpcErr.Message}
	}
	return err
}

// setResult keeps the raw result for the call with that id; false if nobody
// waits for it any more.
func (c *Conn) setResult(id string, result []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	pending := c.calls[id]
	if pending == nil {
		return false
	}
	pending.result = result
	return true
}

// Request is a request or notification of the other end.
type Request struct {
	Method string
	Params []byte // raw JSON, nil if there were none

	conn *Conn
	id   jsonrpc2.ID
	note bool
}

// IsNotification reports that no answer is expected; Reply and Fail then do
// nothing.
func (r *Request) IsNotification() bool { return r.note }

// Decode reads the params into v. Absent params decode to the zero value.
func (r *Request) Decode(v any) error {
	if r.Params == nil {
		return nil
	}
	return json.Unmarshal(r.Params, v)
}

// Reply answers with a raw result, given in as many pieces as it has.
func (r *Request) Reply(result ...[]byte) error {
	return r.respond(func(id []byte) *message { return response(id, result) }, &jsonrpc2.Response{ID: r.id, Result: &null})
}

// Fail answers with an error.
func (r *Request) Fail(code int64, text string) error {
	return r.respond(func(id []byte) *message { return refusal(id, code, text) }, &jsonrpc2.Response{ID: r.id, Error: &jsonrpc2.Error{Code: code, Message: text}})
}

var null = json.RawMessage("null")

func (r *Request) respond(line func(id []byte) *message, resp *jsonrpc2.Response) error {
	if r.note {
		return nil
	}
	id, err := r.id.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encoding the id of a request: %w", err)
	}
	r.conn.mu.Lock()
	defer r.conn.mu.Unlock()
	r.conn.stream.next = line(id)
	return r.conn.translate(r.conn.rpc.SendResponse(context.Background(), resp))
}

// libHandler is the library's way in.
type libHandler struct{ c *Conn }

func (h libHandler) Handle(ctx context.Context, _ *jsonrpc2.Conn, req *jsonrpc2.Request) {
	<-h.c.opened // the first line may be quicker than NewConn's return
	h.c.handler(ctx, &Request{Method: req.Method, Params: h.c.stream.lastParams, conn: h.c, id: req.ID, note: req.Notif})
}

// libLogger takes the two things the library says by itself.
type libLogger struct{ log *slog.Logger }

func (l libLogger) Printf(format string, args ...any) {
	l.log.Debug("host channel", "detail", strings.TrimSpace(fmt.Sprintf(format, args...)))
}
