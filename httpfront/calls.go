package httpfront

import (
	"context"
	"sync"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// cancelGrace is how long a cancelled call waits for the host to say how it
// ended; within 2 s the answer goes out anyway (M11).
const cancelGrace = 1500 * time.Millisecond

// call is a tools/call in flight.
type call struct {
	id    string // the toolCallId (M8) and the id of the record pair (L2)
	sid   string
	rpcID string // the caller's id as raw bytes
	began time.Time
	abort func(string) error // asks the host to abort; nil for the bridge's own tools
	stop  context.CancelFunc // stops waiting

	// Guarded by calls.mu.
	state  string
	reason string // why it was ended from outside; empty: it was not
}

// calls are those in flight.
type calls struct {
	mu   sync.Mutex
	byID map[string]*call
}

func (cs *calls) add(c *call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.byID[c.id] = c
}

func (cs *calls) remove(c *call) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.byID, c.id)
}

func (cs *calls) reason(c *call) string {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return c.reason
}

func (cs *calls) setState(id, state string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if c := cs.byID[id]; c != nil {
		c.state = state
	}
}

func (cs *calls) count() Stats {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	var s Stats
	for _, c := range cs.byID {
		switch c.state {
		case proto.StateApproval:
			s.Waiting++
		case proto.StateQueued:
			s.Queued++
		default:
			s.Running++
		}
	}
	return s
}

// cancel carries out notifications/cancelled: every call of the session with
// that very id (M11).
func (f *Front) cancel(sid string, params []byte) {
	id := string(proto.Member(params, "requestId"))
	if id == "" {
		return
	}
	f.calls.end(textCancelled, cancelGrace, func(c *call) bool { return c.sid == sid && c.rpcID == id })
}

// end ends the calls that match, the first reason given to each being the one
// that counts. The host gets grace to say how they ended.
func (cs *calls) end(reason string, grace time.Duration, match func(*call) bool) {
	cs.mu.Lock()
	var ended []*call
	for _, c := range cs.byID {
		if match(c) && c.reason == "" {
			c.reason = reason
			ended = append(ended, c)
		}
	}
	cs.mu.Unlock()
	for _, c := range ended {
		// A host that cannot be asked is not waited for either.
		if c.abort == nil || c.abort(c.id) != nil || grace == 0 {
			c.stop()
			continue
		}
		time.AfterFunc(grace, c.stop)
	}
}
