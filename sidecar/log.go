package sidecar

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/a2mcp/a2mcp/audit"
)

// NewLog returns the logger of everything the bridge says on stderr. One line a
// message: "[a2mcp] <event>: <detail>", where the event is the message and the
// detail its attributes as key=value. The events are listed in proto/HOST.md;
// operators and tests read them. Tokens are replaced, and what came from
// elsewhere cannot start a line or move the cursor (A5, F4).
func NewLog(w io.Writer, level slog.Level, secrets *audit.Secrets) *slog.Logger {
	return slog.New(&lineHandler{w: w, level: level, secrets: secrets, mu: new(sync.Mutex)})
}

type lineHandler struct {
	w       io.Writer
	level   slog.Level
	secrets *audit.Secrets
	attrs   []slog.Attr

	mu *sync.Mutex // one line at a time; shared by the copies WithAttrs makes
}

func (h *lineHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString("[a2mcp] ")
	line.WriteString(escape(r.Message))
	separator := ": "
	add := func(a slog.Attr) bool {
		line.WriteString(separator)
		separator = " "
		line.WriteString(a.Key)
		line.WriteByte('=')
		line.WriteString(quoteValue(a.Value.Resolve().String()))
		return true
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(add)
	line.WriteByte('\n')

	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, h.secrets.RedactString(line.String()))
	return err
}

func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.attrs = append(append([]slog.Attr(nil), h.attrs...), attrs...)
	return &with
}

// WithGroup is part of slog.Handler; lines are flat.
func (h *lineHandler) WithGroup(string) slog.Handler { return h }

// quoteValue quotes a value that a reader could not tell the end of.
func quoteValue(s string) string {
	if s == "" || strings.ContainsAny(s, " =\"\\") {
		return strconv.Quote(s)
	}
	if quoted := strconv.Quote(s); len(quoted) != len(s)+2 {
		return quoted
	}
	return s
}

// escape makes control characters visible and leaves everything else (F4).
func escape(s string) string {
	quoted := strconv.Quote(s)
	quoted = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	return strings.ReplaceAll(quoted, `\\`, `\`)
}
