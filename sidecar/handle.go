package sidecar

import (
	"context"
	"fmt"

	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/proto"
)

// handle takes one message of the host, in the order of the lines, and does not
// block (HOST.md).
func (s *sidecar) handle(ctx context.Context, req *hostrpc.Request) {
	switch {
	case s.mute.Load():
		return
	case req.Method == proto.HostHello:
		s.greet(req)
		return
	case s.hello.Load() == nil:
		_ = req.Fail(proto.CodeInvalidRequest, "hello comes first; see proto/HOST.md")
		return
	}
	switch req.Method {
	case proto.HostSessionStart:
		s.lane.put(func(ctx context.Context) {
			answer(req, func(p proto.SessionStart) any { return s.sessionStart(ctx, p) })
		})
	case proto.HostSessionShutdown:
		s.lane.put(func(ctx context.Context) {
			answer(req, func(p proto.SessionShutdown) any { return s.sessionShutdown(ctx, p) })
		})
	case proto.HostCommand:
		go answer(req, func(p proto.OperatorCommand) any { return s.command(ctx, p) })
	case proto.HostToolState:
		answer(req, func(p proto.ToolState) any { s.front.SetState(p.CallID, p.State); return nil })
	case proto.HostMainsChanged, proto.HostToolProgress, proto.HostToolsChanged, proto.HostLLMDenied:
		// Nothing hangs on these: the port is decided by host_state, and callers are
		// answered in one piece.
	default:
		s.log.Debug("unknown message from the host", "method", req.Method)
		_ = req.Fail(proto.CodeMethodNotFound, fmt.Sprintf("method not found: %s", req.Method))
	}
}

// answer decodes the params, does the work and replies.
func answer[P any](req *hostrpc.Request, do func(P) any) {
	var params P
	if err := req.Decode(&params); err != nil {
		_ = req.Fail(proto.CodeInvalidParams, "params: "+err.Error())
		return
	}
	_ = req.Reply(proto.Encode(do(params))) // the connection may have ended meanwhile
}
