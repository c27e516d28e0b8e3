package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/a2mcp/a2mcp/audit"
	"github.com/a2mcp/a2mcp/proto"
)

// Widths of a terminal from which on a row of the audit log has more room.
const (
	wide      = 100 // the year and the session
	wider     = 140 // long names of tools
	someWidth = 80  // a terminal that does not say
	leastArgs = 10  // what is left for arguments on the narrowest
)

func atLeastSome(columns int) int {
	if columns <= 0 {
		return someWidth
	}
	return columns
}

// row is a row of the audit log, all of it fit to be shown.
type row struct {
	time, state, took, tool, sid, args string
}

// auditRow is the row of a call. Without a terminal, width 0, nothing is cut.
func auditRow(c *audit.Call, width int, now time.Time) string {
	r := row{
		time: c.Time.Local().Format(time.DateTime), state: string(c.State), took: span(c.Took),
		tool: printable(plainOrQuoted(c.Tool)), sid: "-", args: printable(argumentsText(c.Args)),
	}
	if c.SID != "" {
		r.sid = printable(shortID(c.SID))
	}
	switch {
	case c.State == audit.Pending:
		r.took = span(now.Sub(c.Time)) // its age
	case c.Lone && c.Took == 0:
		r.took = "" // no call (L7)
	}
	return r.text(width, map[audit.State]string{audit.Finished: green, audit.Failed: red, audit.Pending: yellow}[c.State])
}

// plainOrQuoted is a name that cannot pass for more than one, nor for the columns
// beside it: what is not of letters, digits and the signs that names of tools have
// is quoted, the empty name too.
func plainOrQuoted(name string) string {
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.:/$@", r)
	}
	if name == "" || strings.ContainsFunc(name, odd) {
		return string(proto.Encode(name))
	}
	return name
}

// auditHead is the line above the rows.
func auditHead(width int) string {
	head := row{time: "started", state: "state", took: "took", tool: "tool", sid: "session", args: "arguments"}
	return paint(coloured(width), dim, head.text(width, ""))
}

func coloured(width int) bool { return width > 0 && colours() }

// text lays a row out, its state in a colour. The last column takes what is left
// of the width.
func (r row) text(width int, colour string) string {
	date, tool, sid := len(time.DateTime), 16, pad(r.sid, shortIDLength)+"  "
	switch {
	case width >= wider:
		tool = 24
	case width > 0 && width < wide:
		date, tool, sid = len("12-01 15:04:05"), 12, ""
	}
	if width > 0 {
		r.tool = fit(r.tool, tool)
	}
	head := pad(r.time[max(0, len(r.time)-date):], date) + "  "
	state := pad(r.state, len(audit.Pending))
	rest := fmt.Sprintf(" %6s  %s  %s", r.took, pad(r.tool, tool), sid)
	if width > 0 {
		r.args = fit(r.args, max(leastArgs, width-cells(head)-cells(state)-cells(rest)))
	}
	on := colour != "" && coloured(width)
	return strings.TrimRight(head+paint(on, colour, state)+rest+paint(on && r.args != "", dim, r.args), " ")
}

// shortIDLength is enough of an id to tell sessions apart, and for --sid.
const shortIDLength = 8

func shortID(id string) string {
	if runes := []rune(id); len(runes) > shortIDLength {
		return string(runes[:shortIDLength])
	}
	return id
}

// argumentsText shows the arguments of a record as key=JSON, as a2mcp call takes
// them; what is no object as it is.
func argumentsText(raw []byte) string {
	if !proto.IsObject(raw) {
		if text, ok := proto.Text(raw); ok && strings.HasPrefix(text, "{") { // too long for the log to keep whole (L3)
			return text
		}
		return string(raw)
	}
	var pairs []string
	for key, value := range proto.Members(raw) {
		pairs = append(pairs, plainOrQuoted(string(key))+"="+string(value))
	}
	return strings.Join(pairs, " ")
}

// span is a duration in six characters or fewer, but for what took years.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s" // a clock that was set back
	case d < 10*time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d.Round(time.Second/10) < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute:
		return "1m00s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

func pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-cells(s))) }

// fit cuts a text to so many cells of a terminal.
func fit(s string, most int) string {
	if cells(s) <= most {
		return s
	}
	used := 1 // for …
	for i, r := range s {
		if used += cell(r); used > most {
			return s[:i] + "…"
		}
	}
	return s
}

func cells(s string) int {
	n := 0
	for _, r := range s {
		n += cell(r)
	}
	return n
}

// cell is the width of a character, of which terminals have different ideas: two
// for what may be wide.
func cell(r rune) int {
	if r >= 0x1100 && r < 0x1160 || r >= 0x2300 && r < 0x2800 || r >= 0x2e80 {
		return 2
	}
	return 1
}
