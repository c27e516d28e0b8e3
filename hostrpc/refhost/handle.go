package refhost

import (
	"context"
	"encoding/json"
	"time"

	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/proto"
)

// handle takes what the sidecar sends.
func (h *Host) handle(ctx context.Context, req *hostrpc.Request) {
	switch req.Method {
	case proto.SidecarHostState:
		_ = req.Reply(proto.Encode(proto.HostState{Mains: h.liveMains()}))
	case proto.SidecarToolsList:
		_ = req.Reply(h.catalogue())
	case proto.SidecarToolsCall:
		h.call(ctx, req)
	case proto.SidecarToolsCancel:
		var p proto.CallRef
		if req.Decode(&p) == nil {
			h.calls.cancel(p.CallID)
		}
	case proto.SidecarCard:
		h.card(req.Params)
	case proto.SidecarNotify:
		var p proto.Message
		if req.Decode(&p) == nil {
			h.opt.Notice(p.Level, p.Text)
		}
	case proto.SidecarRemember:
		h.mu.Lock()
		h.memory = proto.Member(req.Params, "memory")
		h.mu.Unlock()
	case proto.SidecarStatus:
		// There is no status line here; the demo says the address by itself.
	default:
		_ = req.Fail(proto.CodeMethodNotFound, "method not found: "+req.Method)
	}
}

// card reports a call of one of the bridge's own tools.
func (h *Host) card(params []byte) {
	var p struct {
		CallID    string          `json:"callId"`
		Name      string          `json:"name"`
		Phase     string          `json:"phase"`
		Arguments json.RawMessage `json:"arguments"`
		IsError   bool            `json:"isError"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	if p.Phase == "start" {
		h.calls.cardStarted(p.CallID)
		h.opt.Called(Event{CallID: p.CallID, Name: p.Name, Arguments: p.Arguments, State: EventStarted})
		return
	}
	h.opt.Called(Event{CallID: p.CallID, Name: p.Name, State: endState(p.IsError), Took: h.calls.cardEnded(p.CallID)})
}

// States of an Event besides those of proto.ToolState.
const (
	EventStarted   = "started"
	EventDone      = "done"
	EventFailed    = "failed"
	EventCancelled = "cancelled"
)

func endState(isError bool) string {
	if isError {
		return EventFailed
	}
	return EventDone
}

func (h *Host) liveMains() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.mains)
}

// catalogue is the raw result of tools/list: schemas keep their bytes (M3).
func (h *Host) catalogue() []byte {
	list := []byte(`{"tools":[`)
	for i, t := range h.tools {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(append(list, `{"name":`...), proto.Encode(t.name)...)
		list = append(append(list, `,"description":`...), proto.Encode(t.description)...)
		if t.schema != "" {
			list = append(append(list, `,"inputSchema":`...), t.schema...)
		}
		list = append(list, '}')
	}
	return append(list, `],"source":"main"}`...)
}

// startSession reports a session; a main one counts as live from now on.
func (h *Host) startSession(ctx context.Context, id string, isMain bool) (res proto.SessionStartResult, err error) {
	h.mu.Lock()
	if isMain {
		h.mains[id] = true
	}
	h.mu.Unlock()
	err = h.ask(ctx, proto.HostSessionStart, proto.SessionStart{
		SessionID: id, IsMain: isMain, HasUI: isMain, Cwd: h.opt.Cwd, Mains: h.liveMains(),
	}, &res)
	return res, err
}

// EndSession reports that a session ends; a main one stops counting first.
func (h *Host) EndSession(ctx context.Context, id string, isMain bool) (released bool, err error) {
	h.mu.Lock()
	delete(h.mains, id)
	h.mu.Unlock()
	var res proto.SessionShutdownResult
	err = h.ask(ctx, proto.HostSessionShutdown, proto.SessionShutdown{SessionID: id, IsMain: isMain, Mains: h.liveMains()}, &res)
	return res.Released, err
}

// Command passes on what the operator typed after /a2mcp.
func (h *Host) Command(ctx context.Context, args string) (proto.Message, error) {
	var msg proto.Message
	err := h.ask(ctx, proto.HostCommand, proto.OperatorCommand{Name: "a2mcp", Args: args, SessionID: Main}, &msg)
	return msg, err
}

func (h *Host) ask(ctx context.Context, method string, params, result any) error {
	h.mu.Lock()
	conn := h.conn
	h.mu.Unlock()
	if conn == nil {
		return ErrNoSidecar
	}
	return askOn(ctx, conn, method, params, result)
}

// askTimeout bounds what is asked of a sidecar.
const askTimeout = 10 * time.Second

func askOn(ctx context.Context, conn *hostrpc.Conn, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	raw, err := conn.Call(ctx, method, proto.Encode(params))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, result)
}
