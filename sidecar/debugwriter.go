package sidecar

import (
	"log/slog"
	"strings"
)

// debugWriter takes what net/http says of connections that went wrong, which is
// the caller's doing and of interest to a developer alone.
type debugWriter struct{ log *slog.Logger }

func (w debugWriter) Write(line []byte) (int, error) {
	w.log.Debug("http", "detail", strings.TrimSpace(string(line)))
	return len(line), nil
}
