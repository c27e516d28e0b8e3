package refhost

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/proto"
)

// cancelGrace is how long a cancelled tool may take to end by itself; the answer
// is due within a second (HOST.md).
const cancelGrace = 500 * time.Millisecond

// running is a call in this host.
type running struct {
	id     string
	cancel context.CancelFunc
	began  time.Time
}

type calls struct {
	mu   sync.Mutex
	byID map[string]*running
}

func (cs *calls) add(r *running) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.byID[r.id] = r
}

func (cs *calls) remove(id string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.byID, id)
}

func (cs *calls) cancel(id string) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if r := cs.byID[id]; r != nil {
		r.cancel()
	}
}

func (cs *calls) cardStarted(id string) {
	cs.add(&running{id: id, cancel: func() {}, began: time.Now()})
}

func (cs *calls) cardEnded(id string) (took time.Duration) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if r := cs.byID[id]; r != nil {
		took = time.Since(r.began)
		delete(cs.byID, id)
	}
	return took
}

// call begins a tools/call; it is called in the order of the lines, so that a
// cancel that follows finds it.
func (h *Host) call(conn context.Context, req *hostrpc.Request) {
	var id, name string
	arguments := []byte(`{}`)
	for key, value := range proto.Members(req.Params) {
		switch string(key) {
		case "callId":
			id, _ = proto.Text(value)
		case "name":
			name, _ = proto.Text(value)
		case "arguments":
			arguments = value
		}
	}
	t := h.find(name)
	if t == nil {
		_ = req.Reply([]byte(`{"outcome":"not_exposed"}`))
		return
	}
	if h.liveMains() == 0 {
		_ = req.Reply([]byte(`{"outcome":"no_main"}`))
		return
	}
	if err := t.validate(arguments); err != nil {
		_ = req.Reply([]byte(`{"outcome":"invalid","content":`), proto.TextContent(err.Error()), []byte(`}`))
		return
	}
	ctx, cancel := context.WithCancel(conn) // a sidecar that dies takes its calls along
	r := &running{id: id, cancel: cancel, began: time.Now()}
	h.calls.add(r)
	h.opt.Called(Event{CallID: id, Name: name, Arguments: arguments, State: EventStarted})
	var once sync.Once
	answer := func(out outcome) {
		once.Do(func() {
			h.calls.remove(id)
			state := endState(out.isError)
			if out.cancelled {
				state = EventCancelled
			}
			h.opt.Called(Event{CallID: id, Name: name, State: state, Took: time.Since(r.began)})
			out.reply(req)
		})
	}
	// A tool that does not care about being cancelled cannot hold up the answer.
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(cancelGrace, func() { answer(outcome{cancelled: true}) })
	})
	go func() {
		out := h.carryOut(ctx, r, t, arguments)
		out.cancelled = out.cancelled || ctx.Err() != nil
		answer(out)
		stop()
		cancel()
	}()
}

func (h *Host) find(name string) *tool {
	for i := range h.tools {
		if h.tools[i].name == name && !h.tools[i].vanished {
			return &h.tools[i]
		}
	}
	return nil
}

// outcome is how a call ended.
type outcome struct {
	content   []byte // raw JSON array
	isError   bool
	cancelled bool
}

func (o outcome) reply(req *hostrpc.Request) {
	switch {
	case o.cancelled:
		_ = req.Reply([]byte(`{"outcome":"cancelled"}`))
	case o.isError:
		_ = req.Reply([]byte(`{"outcome":"done","content":`), o.content, []byte(`,"isError":true}`))
	default:
		_ = req.Reply([]byte(`{"outcome":"done","content":`), o.content, []byte(`,"isError":false}`))
	}
}

// carryOut queues, asks, runs.
func (h *Host) carryOut(ctx context.Context, r *running, t *tool, arguments []byte) outcome {
	if t.exclusive {
		select {
		case h.exclusive <- struct{}{}:
		default:
			h.say(r.id, proto.StateQueued)
			select {
			case h.exclusive <- struct{}{}:
				h.say(r.id, proto.StateRunning)
			case <-ctx.Done():
				return outcome{cancelled: true}
			}
		}
	}
	if t.exclusive {
		defer func() { <-h.exclusive }()
	}
	if t.asks && h.opt.Approve != nil {
		h.say(r.id, proto.StateApproval)
		refused := h.opt.Approve(ctx, t.name, arguments)
		switch {
		case ctx.Err() != nil:
			return outcome{cancelled: true}
		case refused != nil:
			return outcome{content: proto.TextContent(refused.Error()), isError: true}
		}
		h.say(r.id, proto.StateRunning)
	}
	content, isError, err := h.protect(ctx, r, t, arguments)
	if err != nil {
		content, isError = proto.TextContent(err.Error()), true
	}
	return outcome{content: content, isError: isError}
}

// protect turns a tool's panic into its error.
func (h *Host) protect(ctx context.Context, r *running, t *tool, arguments []byte) (content []byte, isError bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the tool %s broke: %v", t.name, p)
		}
	}()
	return t.run(env{ctx: ctx, host: h, callID: r.id}, arguments)
}

// say tells sidecar and operator what a call is doing.
func (h *Host) say(callID, state string) {
	h.opt.Called(Event{CallID: callID, State: state})
	h.note(proto.FeatureToolState, proto.HostToolState, proto.ToolState{CallID: callID, State: state})
}
