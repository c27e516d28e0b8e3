package dufs

import (
	"log/slog"
	"strings"
	"sync"
)

// lastLine keeps the last thing that dufs said; what it says goes to the log for developers.
type lastLine struct {
	log *slog.Logger

	mu   sync.Mutex
	last string
	busy bool
}

func (l *lastLine) line(stream, text string) {
	l.log.Debug("dufs", "stream", stream, "text", text)
	l.mu.Lock()
	defer l.mu.Unlock()
	if text = strings.TrimSpace(text); text != "" {
		l.last = text
	}
	l.busy = l.busy || strings.Contains(strings.ToLower(text), "address already in use") || strings.Contains(text, "os error 98") ||
		strings.Contains(text, "os error 48") || strings.Contains(text, "os error 10048")
}

func (l *lastLine) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return "it said nothing"
	}
	return l.last
}

func (l *lastLine) portTaken() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy
}
