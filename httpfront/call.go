package httpfront

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/a2mcp/a2mcp/audit"
	"github.com/a2mcp/a2mcp/proto"
)

// Texts of results that no tool wrote.
const (
	textCancelled  = "cancelled"                       // M11
	textNoMain     = "main session not available"      // M10
	textHostFailed = "the host could not run the tool" // detail on stderr
	textNoRecord   = "audit log not writable"          // L5
	textNotExposed = "tool not exposed: "              // M5
	textOddOutcome = "the host answered in a way the bridge does not know; run `a2mcp install` and restart the host"
)

// result is what a call answers with (M4).
type result struct {
	content []byte // raw JSON array
	isError bool
}

func textResult(text string, isError bool) result {
	return result{content: proto.TextContent(text), isError: isError}
}

// callTool answers tools/call, always with 200 (M4). It is the one place that
// knows the order: start record, host, done record, answer (L1).
func (f *Front) callTool(w http.ResponseWriter, r *http.Request, sid string, msg message) {
	name, arguments := callParams(msg.params)
	release := f.sessions.hold(sid)
	defer release()

	// A dropped connection neither cancels nor repeats anything (M11).
	ctx, stop := context.WithCancel(context.WithoutCancel(r.Context()))
	defer stop()
	began := time.Now()
	c := &call{id: uuid.NewString(), sid: sid, rpcID: string(msg.id), began: began, stop: stop, state: proto.StateRunning}
	own := f.own(name)
	if own == nil {
		c.abort = f.opt.Host.CancelTool
	}
	f.calls.add(c)
	defer f.calls.remove(c)

	record := audit.Record{ID: c.id, SID: sid, Tool: name, Args: arguments}
	record.Time, record.Phase = began, audit.Start
	var res result
	if err := f.opt.Audit.Write(record); err != nil && f.opt.AuditRequired() {
		res = textResult(textNoRecord, true)
	} else if own != nil {
		res = f.runOwn(ctx, c, own, arguments)
	} else {
		res = f.runHost(ctx, c, name, arguments)
	}
	if reason := f.calls.reason(c); reason != "" {
		res = textResult(reason, true)
	}

	record.Time, record.Phase = time.Now(), audit.Done
	record.IsError, record.Took = res.isError, record.Time.Sub(began)
	_ = f.opt.Audit.Write(record) // counted and reported by the log itself (L5)
	flag := []byte(`,"isError":false}`)
	if res.isError {
		flag = []byte(`,"isError":true}`)
	}
	respond(w, http.StatusOK, msg.id, []byte(`"result":{"content":`), res.content, flag)
}

// callParams reads the name and the raw arguments; a name that is missing or no
// string is the empty one (M5).
func callParams(params []byte) (name string, arguments []byte) {
	for key, value := range proto.Members(params) {
		switch string(key) {
		case "name":
			name, _ = proto.Text(value)
		case "arguments":
			arguments = value
		}
	}
	return name, arguments
}

// runHost runs a tool of the host.
func (f *Front) runHost(ctx context.Context, c *call, name string, arguments []byte) result {
	out, err := f.opt.Host.CallTool(ctx, c.id, name, arguments)
	var refusal Refusal
	switch {
	case errors.As(err, &refusal):
		return textResult(string(refusal), true)
	case ctx.Err() != nil: // ended by somebody, whose reason is the answer
		return textResult(textCancelled, true)
	case err != nil:
		f.opt.Log.Error("host failed a call", "tool", name, "err", err)
		return textResult(textHostFailed, true)
	}
	switch out.Outcome {
	case proto.OutcomeDone:
		if out.Background {
			f.background.Add(1)
		}
		return result{content: normalize(out.Content), isError: out.IsError}
	case proto.OutcomeInvalid:
		f.opt.Refused(name, firstText(out.Content))
		return result{content: normalize(out.Content), isError: true}
	case proto.OutcomeNotExposed:
		f.opt.Refused(name, "there is no such tool")
		return textResult(f.opt.Redact(textNotExposed+name), true)
	case proto.OutcomeNoMain:
		return textResult(textNoMain, true)
	case proto.OutcomeCancelled:
		return textResult(textCancelled, true)
	}
	f.opt.Log.Error("host answered a call oddly", "tool", name, "outcome", out.Outcome)
	return textResult(textOddOutcome, true)
}

// runOwn runs one of the bridge's own tools beside this goroutine, so that a
// cancelled call ends in time whatever the tool is doing (M11). What panics there
// is out of reach of ServeHTTP and would end the bridge; it ends the call (M4).
func (f *Front) runOwn(ctx context.Context, c *call, own *Tool, arguments []byte) result {
	done := make(chan result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				f.opt.Log.Error("internal error", "cause", fmt.Errorf("panic in %s: %v", own.Name, p))
				done <- textResult("internal error", true)
			}
		}()
		text, isError := own.Run(ctx, c.id, c.sid, arguments)
		done <- textResult(text, isError)
	}()
	select {
	case res := <-done:
		return res
	case <-ctx.Done():
		return textResult(textCancelled, true)
	}
}
