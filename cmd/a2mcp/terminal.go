package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/a2mcp/a2mcp/hostrpc/refhost"
	"github.com/a2mcp/a2mcp/proto"
)

// slowCall is after how long a call that has not ended gets a line of its own.
const slowCall = time.Second

// terminal is the demo's operator: it shows calls as they come, asks, and passes
// on what is typed. What came from a caller is escaped (F4).
type terminal struct {
	in     io.Reader
	quiet  bool // JSON mode: only questions and answers are shown
	asks   bool // before a tool writes or runs anything
	colour bool

	mu        sync.Mutex
	out       io.Writer
	calls     map[string]*shownCall
	questions []*question // approvals that wait for an answer
	asked     int
	deaf      bool // the input has ended
}

type shownCall struct {
	name, arguments string
	slow            *time.Timer
}

func newTerminal(out *os.File, in io.Reader, quiet, asks bool) *terminal {
	return &terminal{
		in: in, quiet: quiet, asks: asks, out: out, calls: map[string]*shownCall{}, colour: isTerminal(out) && colours(),
	}
}

// Colours of a line (ECMA-48, SGR).
const (
	green  = "32"
	red    = "31"
	yellow = "33"
	dim    = "2"
)

// colours reports whether a terminal is to have them.
func colours() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

func (t *terminal) paint(colour, text string) string { return paint(t.colour, colour, text) }

func paint(on bool, colour, text string) string {
	if !on {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (t *terminal) lineLocked(format string, args ...any) {
	if !t.quiet {
		fmt.Fprintf(t.out, format+"\n", args...)
	}
}

// welcome says where the bridge is and what to do with it.
func (t *terminal) welcome(url, token, log string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lineLocked(`
  a2mcp demo: a small host with the tools read, write, bash and grep, and its bridge.

  address  %[1]s
  token    %[2]s
  log      %[3]s

  Call a tool with curl:

export A2MCP_URL=%[1]s A2MCP_TOKEN=%[2]s
SID=$(curl -s -D - -o /dev/null -H "Authorization: Bearer $A2MCP_TOKEN" -d '{"jsonrpc":"2.0","id":1,"method":"initialize"}' $A2MCP_URL | tr -d '\r' | sed -n 's/^mcp-session-id: //p')
curl -s -H "Authorization: Bearer $A2MCP_TOKEN" -H "mcp-session-id: $SID" -d '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"bash","arguments":{"command":"uname -a"}}}' $A2MCP_URL; echo

  Or add it to Claude Code:

claude mcp add --transport http a2mcp %[1]s --header "Authorization: Bearer %[2]s"

  Calls show up here. Type /a2mcp for the status; Ctrl-C ends everything.
`, url, token, log)
}

// notice shows what the bridge has to say.
func (t *terminal) notice(level, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	colour := dim
	if level != proto.LevelInfo {
		colour = yellow
	}
	t.lineLocked("%s %s", time.Now().Format(timeFormat), t.paint(colour, printable(text)))
}

// called shows a call when it ends, or while it is running if that takes long.
func (t *terminal) called(e refhost.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.calls[e.CallID]
	switch e.State {
	case refhost.EventStarted:
		c = &shownCall{name: printable(e.Name), arguments: printable(shorten(string(e.Arguments), 100))}
		c.slow = time.AfterFunc(slowCall, func() { t.stillRunning(e.CallID) })
		t.calls[e.CallID] = c
	case refhost.EventDone, refhost.EventFailed, refhost.EventCancelled:
		if c == nil {
			return
		}
		c.slow.Stop()
		delete(t.calls, e.CallID)
		mark := t.paint(green, "ok")
		if e.State != refhost.EventDone {
			mark = t.paint(red, e.State)
		}
		t.lineLocked("%s %s %s %s %s", time.Now().Format(timeFormat), mark, c.name, t.paint(dim, c.arguments), tookText(e.Took))
	}
}

func (t *terminal) stillRunning(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.calls[id]; c != nil {
		t.lineLocked("%s .. %s %s", time.Now().Format(timeFormat), c.name, t.paint(dim, c.arguments))
	}
}

func tookText(d time.Duration) string {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// read takes lines until the input ends: y and n answer a question, /a2mcp goes
// to the bridge. The demo goes on without an input.
func (t *terminal) read(ctx context.Context, host *refhost.Host) {
	for in := bufio.NewReader(t.in); ; {
		line, more, err := in.ReadLine()
		if err != nil {
			t.inputEnded()
			return
		}
		text, whole := strings.TrimSpace(string(line)), !more
		for more && err == nil {
			_, more, err = in.ReadLine()
		}
		args, isCommand := strings.CutPrefix(text, "/a2mcp")
		switch {
		case !whole:
			t.say("that line was too long; nothing of it was taken")
		case text == "":
		case isCommand:
			t.command(ctx, host, strings.TrimSpace(args))
		default:
			t.answer(text)
		}
	}
}

func (t *terminal) command(ctx context.Context, host *refhost.Host, args string) {
	msg, err := host.Command(ctx, args)
	if err != nil {
		msg.Text = err.Error()
	}
	for line := range strings.Lines(msg.Text) {
		t.say(printable(strings.TrimSuffix(line, "\n")))
	}
}

// say answers what was typed.
func (t *terminal) say(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "  %s\n", text)
}
