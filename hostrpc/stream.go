package hostrpc

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/a2mcp/a2mcp/proto"
)

// headBytes is how much of an overlong line is kept to find its id in.
const headBytes = 64 << 10

// stream is the jsonrpc2.ObjectStream of this package: newline-delimited JSON
// whose params and results go around the library.
type stream struct {
	conn *Conn
	r    *bufio.Reader

	next       *message // what WriteObject completes; guarded by Conn.mu
	lastParams []byte   // of the request ReadObject returned last; the reader's
}

func newStream(c *Conn) *stream {
	return &stream{conn: c, r: bufio.NewReaderSize(c.in, batchBytes)}
}

// WriteObject queues the line for obj with the pieces of next as its params or
// its result. It never blocks.
func (s *stream) WriteObject(obj any) error {
	small, err := obj.(json.Marshaler).MarshalJSON()
	if err != nil {
		return err
	}
	msg := s.next
	s.next = nil
	if msg == nil {
		msg = &message{}
	}
	var id, method, fault []byte
	for key, value := range proto.Members(small) {
		switch string(key) {
		case "id":
			id = value
		case "method":
			method = value
		case "error":
			fault = value
		}
	}
	head := append(make([]byte, 0, 96), `{"jsonrpc":"2.0"`...)
	if id != nil {
		head = append(append(head, `,"id":`...), id...)
	}
	switch {
	case fault != nil:
		head = append(append(head, `,"error":`...), fault...)
	case method != nil:
		head = append(append(head, `,"method":`...), method...)
		if len(msg.params) > 0 {
			head = append(head, `,"params":`...)
		}
	default:
		head = append(head, `,"result":`...)
		if len(msg.params) == 0 {
			head = append(head, `null`...)
		}
	}
	msg.head, msg.tail = head, []byte("}\n")
	size := len(head) + 1
	for _, p := range msg.params {
		size += len(p)
	}
	if size > s.conn.opt.MaxLine {
		return errTooLong
	}
	return s.conn.box.put(msg)
}

// ReadObject reads lines until one is a message. Only the end of input is an
// error: whatever else is wrong with a line concerns that line (HOST.md,
// framing).
func (s *stream) ReadObject(v any) error {
	for {
		line, whole, err := s.readLine()
		if err != nil {
			return err
		}
		if !whole {
			line = s.overlong(line)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if !utf8.Valid(line) {
			line = bytes.ToValidUTF8(line, []byte("\uFFFD")) // callers are promised UTF-8
		}
		if small := s.digest(line); small != nil && v.(json.Unmarshaler).UnmarshalJSON(small) == nil {
			return nil
		}
		s.conn.opt.Log.Warn("stray line from the host", "line", cut(line))
	}
}

// digest keeps the raw params or result of a line and returns the line without
// them, nil if it is no message.
func (s *stream) digest(line []byte) []byte {
	if !proto.IsObject(line) || !json.Valid(line) {
		return nil
	}
	var id, method, params, result, fault []byte
	for key, value := range proto.Members(line) {
		switch string(key) {
		case "id":
			id = value
		case "method":
			method = value
		case "params":
			params = value
		case "result":
			result = value
		case "error":
			fault = value
		}
	}
	small := append(make([]byte, 0, 96), `{"jsonrpc":"2.0"`...)
	if id != nil {
		small = append(append(small, `,"id":`...), id...)
	}
	switch {
	case method != nil:
		s.lastParams = params
		small = append(append(small, `,"method":`...), method...)
	case fault != nil && !bytes.Equal(fault, null):
		small = append(append(small, `,"error":`...), fault...)
	case result != nil:
		if text, ok := proto.Text(id); ok {
			s.conn.setResult(text, result)
		}
		small = append(small, `,"result":null`...)
	}
	return append(small, '}')
}

// Close closes the streams if they can be closed; that ends a blocked read
// where the operating system allows it.
func (s *stream) Close() error {
	s.conn.box.close()
	if c, ok := s.conn.in.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// readLine returns the next line without its newline. whole is false for a line
// over the limit, of which only the first bytes are kept.
func (s *stream) readLine() (line []byte, whole bool, err error) {
	part, err := s.readPart()
	if err == nil {
		// The common case, one copy: params and results outlive the read buffer.
		return bytes.Clone(part[:len(part)-1]), true, nil
	}
	var parts [][]byte
	size := 0
	for errors.Is(err, bufio.ErrBufferFull) {
		if size <= s.conn.opt.MaxLine {
			parts = append(parts, bytes.Clone(part))
		}
		size += len(part)
		part, err = s.readPart()
	}
	if err != nil {
		return nil, false, err // a line without its newline is no line
	}
	size += len(part) - 1
	if size > s.conn.opt.MaxLine {
		head := bytes.Join(parts[:min(len(parts), headBytes/batchBytes)], nil)
		return head, false, nil
	}
	line = make([]byte, 0, size)
	for i, p := range parts {
		line = append(line, p...)
		parts[i] = nil
	}
	return append(line, part[:len(part)-1]...), true, nil
}

func (s *stream) readPart() ([]byte, error) {
	part, err := s.r.ReadSlice('\n')
	if len(part) > 0 {
		s.conn.alive()
	}
	return part, err
}

// overlong answers a request that is too long, and turns a response that is too
// long into an error for the call that waits for it.
func (s *stream) overlong(head []byte) []byte {
	id := proto.Member(head, "id")
	s.conn.opt.Log.Warn("overlong line from the host", "limit", s.conn.opt.MaxLine, "id", cut(id))
	if id == nil {
		return nil
	}
	fault := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	fault = append(fault, `,"error":{"code":-32600,"message":"the message is longer than a line may be"}}`...)
	if proto.Member(head, "method") == nil {
		return fault
	}
	_ = s.conn.box.put(&message{head: fault, tail: []byte("\n")}) // a full queue: the host is not reading anyway
	return nil
}

// cut shortens a foreign line for the log, which escapes it.
func cut(line []byte) string {
	const most = 200
	if len(line) > most {
		return string(line[:most]) + "…"
	}
	return string(line)
}
