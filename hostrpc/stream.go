package hostrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/a2mcp/a2mcp/proto"
)

var errTooLong = errors.New("the message is longer than a line to the host may be")

// stream is the jsonrpc2.ObjectStream of this package: newline-delimited JSON
// whose params and results go around the library.
type stream struct {
	conn  *Conn
	lines *lineReader

	next       *message // the line of what the library is about to write; guarded by Conn.mu
	lastParams []byte   // of the request ReadObject returned last; the reader's
}

func newStream(c *Conn) *stream {
	return &stream{conn: c, lines: newLineReader(c.in, c.opt.MaxLine, c.alive)}
}

// WriteObject queues the line that was prepared for obj. It never blocks.
func (s *stream) WriteObject(any) error {
	msg := s.next
	s.next = nil
	if msg.size()-1 > s.conn.opt.MaxLine {
		return errTooLong
	}
	return s.conn.box.put(msg)
}

// ReadObject reads lines until one is a message. Only the end of input is an
// error: whatever else is wrong with a line concerns that line (HOST.md,
// framing).
func (s *stream) ReadObject(v any) error {
	for {
		line, whole, err := s.lines.next()
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

// overlong answers a request that is too long, and turns a response that is too
// long into an error for the call that waits for it.
func (s *stream) overlong(head []byte) []byte {
	id := proto.Member(head, "id")
	s.conn.opt.Log.Warn("overlong line from the host", "limit", s.conn.opt.MaxLine, "id", cut(id))
	if id == nil {
		return nil
	}
	fault := refusal(id, proto.CodeInvalidRequest, "the message is longer than a line may be")
	if proto.Member(head, "method") == nil {
		return append(fault.head, fault.tail...)
	}
	_ = s.conn.box.put(fault) // a full queue: the host is not reading anyway
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
