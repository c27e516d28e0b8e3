package audit

import (
	"strconv"
	"sync"
	"time"
)

// Phase says which of the pair of records of a call this is (L1).
type Phase string

// Phases. Records of what is not a call have the phase Done alone (L7).
const (
	Start Phase = "start"
	Done  Phase = "done"
)

// Record is one line of the log (L2).
type Record struct {
	Time    time.Time
	ID      string // joins the pair
	SID     string // a session that the bridge issued; empty is null
	Phase   Phase
	Tool    string
	IsError bool          // Done only
	Took    time.Duration // Done only
	Args    []byte        // raw JSON as the caller sent it; nil is {}
}

// timeLayout is RFC 3339 in UTC with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z"

// append writes the line: ts, id, sid, phase, tool, isError, ms, args.
func (r *Record) append(dst []byte, secrets *Secrets) []byte {
	dst = append(dst, `{"ts":"`...)
	dst = r.Time.UTC().AppendFormat(dst, timeLayout)
	dst = appendQuoted(append(dst, `","id":`...), []byte(r.ID))
	dst = append(dst, `,"sid":`...)
	if r.SID == "" {
		dst = append(dst, `null`...)
	} else {
		dst = appendFolded(dst, []byte(r.SID), secrets)
	}
	dst = append(append(append(dst, `,"phase":"`...), r.Phase...), '"')
	dst = appendFolded(append(dst, `,"tool":`...), []byte(r.Tool), secrets)
	if r.Phase == Done {
		dst = strconv.AppendBool(append(dst, `,"isError":`...), r.IsError)
		// Milliseconds, to the microsecond.
		ms := float64(r.Took.Round(time.Microsecond)) / float64(time.Millisecond)
		dst = strconv.AppendFloat(append(dst, `,"ms":`...), ms, 'f', -1, 64)
	}
	args := r.Args
	if args == nil {
		args = []byte(`{}`)
	}
	dst = Fold(append(dst, `,"args":`...), args, secrets)
	return append(dst, '}', '\n')
}

// maxBuffer is the largest buffer that is kept for the next record.
const maxBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

func takeBuffer() []byte { return (*buffers.Get().(*[]byte))[:0] }

func giveBuffer(b []byte) {
	if cap(b) <= maxBuffer {
		buffers.Put(&b)
	}
}
