package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

func TestColours(t *testing.T) {
	for _, c := range []struct {
		none, term string
		want       bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}} {
		t.Setenv("NO_COLOR", c.none)
		t.Setenv("TERM", c.term)
		if got := colours(); got != c.want {
			t.Errorf("NO_COLOR=%s TERM=%s: %v", c.none, c.term, got)
		}
	}
}

// E1: what a notice shows is no line of standard error too, whichever comes first;
// all else is, in its order and soon.
func TestNothingIsShownTwice(t *testing.T) {
	const (
		line   = `[a2mcp] configuration not taken over: err="/a b/a2mcp.json: port: got \"x\\u001b\"; correct it"`
		notice = `a2mcp keeps its running settings: /a b/a2mcp.json: port: got "x\u001b"; correct it`
		odd    = `[a2mcp] configuration: file="/a b/a2mcp.json" detail="prot is not a field"`
		plain  = `[a2mcp] 1 unauthorized attempt(s)`
	)
	for _, c := range []struct {
		name  string
		once  bool
		order []string // what comes, 10 ms apart; empty: a second of silence
		want  []string // lines
	}{
		{"the line first", true, []string{plain, line, odd, notice}, []string{plain, odd}},
		{"the notice first", true, []string{notice, line, odd}, []string{odd}},
		{"long after it", true, []string{notice, "", line}, []string{line}},
		{"long before it", true, []string{line, "", notice}, []string{line}},
		{"elsewhere", false, []string{line, notice}, []string{line}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out, lines bytes.Buffer
			term := &terminal{once: c.once, out: &out, errors: &lines}
			for _, text := range c.order {
				switch text {
				case "":
					time.Sleep(time.Second)
				case notice:
					term.notice(proto.LevelError, text)
				default:
					term.sidecarLine(text)
				}
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(heldFor)
			synctest.Wait()
			if want := strings.Join(c.want, "\n") + "\n"; lines.String() != want {
				t.Errorf("%s: got\n%swant\n%s", c.name, &lines, want)
			}
		})
	}
	term := &terminal{once: true, out: &bytes.Buffer{}, errors: &bytes.Buffer{}}
	term.notice(proto.LevelError, "a2mcp is not serving: no port")
	if !term.hasShown(errors.New("not serving: no port")) || term.hasShown(errors.New("not serving: no token")) {
		t.Error("what the demo ends with is not told from what was shown")
	}
	term.sidecarLine(plain)
	term.letGo(nil)
	if lines := term.errors.(*bytes.Buffer).String(); lines != plain+"\n" {
		t.Errorf("at the end: %q", lines)
	}
}
