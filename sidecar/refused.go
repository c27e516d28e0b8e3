package sidecar

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// How often refused calls are told, and how much of a caller's text is shown.
const (
	refusedPause = time.Second
	refusedMost  = 160 // characters
)

// refusals counts the calls that never ran since the last notice.
type refusals struct {
	mu      sync.Mutex
	waiting bool // for the end of the pause
	more    int
}

// refused tells the operator of a call that no card shows: its name is not there, or
// its arguments are not what the tool takes. There is one notice a second at most,
// whatever callers do (M9).
func (s *sidecar) refused(name, why string) {
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	if s.refusals.waiting {
		s.refusals.more++
		return
	}
	s.refusals.waiting = true
	time.AfterFunc(refusedPause, s.tellRefusals)
	_ = s.host.Notify(proto.LevelInfo, fmt.Sprintf("a2mcp: a call of %s was refused: %s", s.shown(name), s.shown(why)))
}

// tellRefusals is the end of the pause.
func (s *sidecar) tellRefusals() {
	s.refusals.mu.Lock()
	defer s.refusals.mu.Unlock()
	if s.refusals.more > 0 {
		_ = s.host.Notify(proto.LevelInfo, fmt.Sprintf("a2mcp: calls refused since then: %d", s.refusals.more))
	}
	s.refusals.waiting, s.refusals.more = false, 0
}

// shown is a caller's text on one line, without secrets and with nothing in it that
// moves a cursor (A5, F4).
func (s *sidecar) shown(text string) string {
	text = s.secrets.RedactString(text)
	if len(text) > 8*refusedMost { // the rest would not be shown anyway
		text = strings.ToValidUTF8(text[:8*refusedMost], "")
	}
	text = escape(strings.Join(strings.Fields(text), " "))
	if runes := []rune(text); len(runes) > refusedMost {
		return string(runes[:refusedMost]) + "…"
	}
	return text
}
