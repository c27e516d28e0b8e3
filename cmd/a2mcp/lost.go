package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http/httptrace"
	"sync/atomic"
)

// progress is how far an exchange came. Connections are made in goroutines of their
// own, which may outlast it.
type progress struct {
	reached  atomic.Bool // something took a connection
	sending  atomic.Bool // the connection was ready for the request
	answered atomic.Bool // the first byte of an answer came
}

// trace makes ctx one whose exchange is followed.
func (p *progress) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectDone: func(_, _ string, err error) {
			if err == nil {
				p.reached.Store(true)
			}
		},
		GotConn:              func(httptrace.GotConnInfo) { p.sending.Store(true) },
		GotFirstResponseByte: func() { p.answered.Store(true) },
	})
}

// lost says what an exchange that failed means for the call.
func (c *client) lost(ctx context.Context, p *progress, err error) error {
	var network net.Error
	if code, yes := interrupted(ctx); yes {
		return failed(code, "interrupted; %s", c.giveUp())
	}
	switch cut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network); {
	case ctx.Err() != nil:
		c.giveUp()
		return failed(exitTimeout, "no answer in time; %s", c.fate("the call may still be running (the audit log tells)"))
	case !p.reached.Load() && !p.sending.Load():
		return failed(exitDead, "nothing answers at %s: is the host running? (%v)", c.url, err)
	case !p.sending.Load(), p.answered.Load() && !cut:
		return failed(exitProtocol, "what answers at %s is no bridge: %v", c.url, err)
	}
	return failed(exitTimeout, "the connection ended before an answer; %s", c.fate("the call may have run (the audit log tells)"))
}

// fate is what became of the call; what is left of it counts once it was sent.
func (c *client) fate(sent string) string {
	if !c.called {
		return "nothing was called"
	}
	return sent
}

// giveUp cancels the call that nobody waits for any more, and says what came of that.
func (c *client) giveUp() string {
	if c.called && c.cancel() {
		return "the call was cancelled"
	}
	return c.fate("the call may still be running (the audit log tells)")
}
