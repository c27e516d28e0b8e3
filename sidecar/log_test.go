package sidecar

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/a2mcp/a2mcp/audit"
)

// E1, F4, A5: one shape of line; what came from elsewhere cannot forge another
// one, and tokens are replaced in whatever place.
func TestLogLines(t *testing.T) {
	var out bytes.Buffer
	var secrets audit.Secrets
	secrets.Add(testToken)
	log := NewLog(&out, slog.LevelInfo, &secrets)
	log.Info("listening", "url", "http://127.0.0.1:1/")
	log.Warn("7 unauthorized attempt(s)")
	log.Error("host failed a call", "tool", "x\n[a2mcp] forged: \x1b[31m\u2028", "err", errors.New("token is "+testToken))
	log.Debug("not shown")
	want := "[a2mcp] listening: url=http://127.0.0.1:1/\n" +
		"[a2mcp] 7 unauthorized attempt(s)\n" +
		`[a2mcp] host failed a call: tool="x\n[a2mcp] forged: \x1b[31m\u2028" err="token is <token>"` + "\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if strings.Count(out.String(), "\n") != 3 {
		t.Error("not three lines")
	}
}
