package audit

import (
	"encoding/hex"
	"encoding/json"
	"time"
	"unicode/utf8"
)

// State is how far a call has come, by its records.
type State string

// States of a call.
const (
	Pending  State = "pending" // started; nothing says that it ended
	Finished State = "done"
	Failed   State = "error"
)

// Call is what the log says of one call: its pair of records joined, or the one
// that there is (L1). Texts are as they stand in the log; whoever shows them
// escapes them (F4).
type Call struct {
	Time  time.Time // of its first record
	Last  time.Time // of its last record
	ID    string
	SID   string // empty is null
	Tool  string
	State State
	Took  time.Duration   // none while it is pending
	Lone  bool            // a done alone: no call (L7), or its start was rotated away
	Args  json.RawMessage // as they stand in the log

	ts, ms json.RawMessage // as they stand in the log
	order  int
}

// line is a record as it stands in the log (L2).
type line struct {
	TS, SID, MS, Args json.RawMessage
	ID, Tool          *string
	Phase             Phase
	IsError           bool
}

// parse reads a line; it returns false for what is no record.
func parse(text []byte) (Phase, *Call, bool) {
	var l line
	if json.Unmarshal(text, &l) != nil || l.ID == nil || l.Tool == nil || l.Phase != Start && l.Phase != Done {
		return "", nil, false
	}
	c := &Call{ID: *l.ID, Tool: *l.Tool, State: Pending, Args: l.Args, ts: l.TS, ms: l.MS}
	if json.Unmarshal(l.TS, &c.Time) != nil || c.Time.IsZero() || l.SID != nil && json.Unmarshal(l.SID, &c.SID) != nil {
		return "", nil, false
	}
	c.Last = c.Time
	if l.Phase == Start {
		return Start, c, true
	}
	var ms float64
	if l.MS != nil && json.Unmarshal(l.MS, &ms) != nil {
		return "", nil, false
	}
	c.Took = time.Duration(ms * float64(time.Millisecond))
	c.State = Finished
	if l.IsError {
		c.State = Failed
	}
	return Done, c, true
}

// begin takes over what a start says and a done does not.
func (c *Call) begin(start *Call) {
	c.Lone = start == nil
	if start != nil {
		c.Time, c.ts = start.Time, start.ts
	}
}

// AppendJSON appends the call as one JSON object on one line: ts, id, sid, tool,
// state, ms (null while it is pending) and args, the values as they stand in the
// log but for characters that would move a terminal's cursor (F4).
func (c *Call) AppendJSON(dst []byte) []byte {
	dst = appendRaw(append(dst, `{"ts":`...), c.ts)
	dst = appendQuoted(append(dst, `,"id":`...), []byte(c.ID))
	dst = append(dst, `,"sid":`...)
	if c.SID == "" {
		dst = append(dst, `null`...)
	} else {
		dst = appendQuoted(dst, []byte(c.SID))
	}
	dst = appendQuoted(append(dst, `,"tool":`...), []byte(c.Tool))
	dst = append(append(append(dst, `,"state":"`...), c.State...), '"')
	dst = appendRaw(append(dst, `,"ms":`...), c.ms)
	return append(appendRaw(append(dst, `,"args":`...), c.Args), '}')
}

// appendRaw appends JSON as it is. What it escapes can only stand in strings, and
// a log of this package has none of it.
func appendRaw(dst []byte, raw json.RawMessage) []byte {
	if raw == nil {
		return append(dst, `null`...)
	}
	for text := []byte(raw); len(text) > 0; {
		r, n := utf8.DecodeRune(text)
		switch {
		case r < ' ': // white space between values
		case movesCursor(r) || r == utf8.RuneError && n == 1:
			dst = hex.AppendEncode(append(dst, '\\', 'u'), []byte{byte(r >> 8), byte(r)})
		default:
			dst = append(dst, text[:n]...)
		}
		text = text[n:]
	}
	return dst
}
