package httpfront

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/a2mcp/a2mcp/audit"
)

// TestOwnToolPanics: one of the bridge's own tools that panics ends its call and
// not the bridge, with both records in the log (M4, L1).
func TestOwnToolPanics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log, err := audit.Open(path, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	f := New(Options{
		Audit: log, Log: slog.New(slog.NewTextHandler(&said, nil)), Token: func() string { return "token" }, MaxBody: func() int64 { return 1 << 10 },
		AuditRequired: func() bool { return true }, Remember: func(context.Context) {},
		Own: []Tool{{Name: "own", Run: func(context.Context, string, string, []byte) (string, bool) { panic("a bug") }}},
	})
	post := func(sid, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer token")
		r.Header.Set("Mcp-Session-Id", sid)
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		return w
	}

	w := post(f.sessions.create(), `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"own"}}`)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"text":"internal error"`) || !strings.Contains(w.Body.String(), `"isError":true`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(said.String(), "panic in own: a bug") {
		t.Errorf("said %s", said.String())
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := audit.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var ended []*audit.Call
	if err := r.Read(func(c *audit.Call) error { ended = append(ended, c); return nil }); err != nil || len(ended) != 1 || ended[0].State != audit.Failed || ended[0].Lone {
		t.Errorf("%v, %v", ended, err)
	}
}
