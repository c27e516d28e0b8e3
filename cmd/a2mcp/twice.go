package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// heldFor is how long a line of the sidecar's standard error waits for a notice that
// says the same, and a notice for such a line: they come through different pipes.
const heldFor = 50 * time.Millisecond

// said is a line that is held, or the last notice.
type said struct {
	text string
	at   time.Time
}

// sidecarLine passes on a line of the sidecar's standard error. Where that and the
// notices are on one terminal, a line whose details a notice shows is left out.
func (t *terminal) sidecarLine(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case !t.once:
		fmt.Fprintln(t.errors, text)
	case time.Since(t.noticed.at) < heldFor && shows(t.noticed.text, text):
	default:
		line := &said{text, time.Now()}
		t.held = append(t.held, line)
		time.AfterFunc(heldFor, func() { t.letGo(line) })
	}
}

// letGo prints a line that is still held, after those that came before it; nil is
// the last of all.
func (t *terminal) letGo(last *said) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := slices.Index(t.held, last) + 1
	if last == nil {
		n = len(t.held)
	}
	for _, line := range t.held[:n] {
		fmt.Fprintln(t.errors, line.text)
	}
	t.held = t.held[n:]
}

// noticedLocked remembers a notice and leaves out the lines that it shows.
func (t *terminal) noticedLocked(text string) {
	t.noticed = said{text, time.Now()}
	t.held = slices.DeleteFunc(t.held, func(line *said) bool { return shows(text, line.text) })
}

// hasShown reports whether the last notice says what the demo ends with.
func (t *terminal) hasShown(err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.once && strings.Contains(t.noticed.text, printable(err.Error()))
}

// shows reports whether a notice has all the details of a line (HOST.md); a line
// without any is news.
func shows(notice, line string) bool {
	found := false
	_, rest, more := strings.Cut(line, ": ")
	for more {
		if _, rest, more = strings.Cut(rest, "="); !more {
			break
		}
		value, after, _ := strings.Cut(rest, " ")
		if quoted, err := strconv.QuotedPrefix(rest); err == nil && rest[0] == '"' {
			value, _ = strconv.Unquote(quoted)
			after = rest[len(quoted):]
		}
		if !strings.Contains(notice, printable(value)) {
			return false
		}
		rest, found = after, true
	}
	return found
}
