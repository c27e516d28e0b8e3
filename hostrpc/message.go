package hostrpc

import (
	"container/list"
	"strconv"

	"github.com/a2mcp/a2mcp/proto"
)

// message is one line to be written: pieces put together as they are.
type message struct {
	head    []byte        // what comes before the foreign bytes
	foreign [][]byte      // valid JSON together, never copied as a whole
	tail    string        // what comes after, newline included
	written chan struct{} // closed when it has left or never will; may be nil

	place *list.Element // in the queue; nil when it is not there (any more)
}

const lineEnd = "}\n"

// size is the length of the line with its newline.
func (m *message) size() int { return len(m.head) + length(m.foreign) + len(m.tail) }

func (m *message) finish() {
	if m.written != nil {
		close(m.written)
	}
}

// request is the line of a request, or of a notification if id is empty.
func request(id, method string, params [][]byte) *message {
	head := append(make([]byte, 0, 96), `{"jsonrpc":"2.0"`...)
	if id != "" {
		head = append(append(append(head, `,"id":"`...), id...), '"')
	}
	head = appendText(append(head, `,"method":`...), method)
	if length(params) == 0 {
		return &message{head: head, tail: lineEnd}
	}
	return &message{head: append(head, `,"params":`...), foreign: params, tail: lineEnd}
}

// response is the line that answers the request with that raw id.
func response(id []byte, result [][]byte) *message {
	head := append(responseHead(id), `,"result":`...)
	if length(result) == 0 {
		head = append(head, `null`...)
	}
	return &message{head: head, foreign: result, tail: lineEnd}
}

// refusal is the line that answers the request with that raw id with an error.
func refusal(id []byte, code int64, text string) *message {
	head := strconv.AppendInt(append(responseHead(id), `,"error":{"code":`...), code, 10)
	head = appendText(append(head, `,"message":`...), text)
	return &message{head: head, tail: "}" + lineEnd}
}

func responseHead(id []byte) []byte {
	return append(append(make([]byte, 0, 96), `{"jsonrpc":"2.0","id":`...), id...)
}

func length(pieces [][]byte) (n int) {
	for _, p := range pieces {
		n += len(p)
	}
	return n
}

// appendText appends s as a JSON string. Names and ids are nearly always plain
// and then need no encoder.
func appendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return proto.AppendString(dst, s)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}
