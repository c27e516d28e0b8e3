package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/httpfront"
	"github.com/a2mcp/a2mcp/proto"
)

// Texts of calls that the host did not answer.
const (
	textFrozen = "host does not answer; the call may have run" // M13
	textGone   = "the host has gone; the call may have run"    // P6
	textFull   = "the host does not read; the call did not run"
	textEnding = "the bridge is closing; the call may have run" // P5
)

// link is the host as the HTTP front sees it: while the host is frozen nothing
// new is asked of it (M13), and what went wrong on the pipe is put into words.
type link struct {
	hostrpc.Host
	log    *slog.Logger
	frozen atomic.Bool
}

// CallTool runs a tool; see hostrpc.Host.CallTool.
func (l *link) CallTool(ctx context.Context, callID, name string, arguments []byte) (proto.Outcome, error) {
	if l.frozen.Load() {
		return proto.Outcome{}, httpfront.Refusal(textFrozen)
	}
	out, err := l.Host.CallTool(ctx, callID, name, arguments)
	switch {
	case errors.Is(err, hostrpc.ErrClosed):
		return out, httpfront.Refusal(textGone)
	case errors.Is(err, hostrpc.ErrQueueFull):
		return out, httpfront.Refusal(textFull)
	}
	return out, err
}

// notice shows the operator something and keeps it on stderr too, where it
// outlives the screen.
func (l *link) notice(level, text string) {
	l.log.Info("notice", "level", level, "text", text)
	_ = l.Notify(level, text) // a host that has gone has no operator
}
