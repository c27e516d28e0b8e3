package httpfront

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/a2mcp/a2mcp/audit"
	"github.com/a2mcp/a2mcp/proto"
)

// echoHost answers each call with its arguments.
type echoHost struct{}

func (echoHost) Tools(context.Context) ([]proto.Tool, error) { return nil, nil }
func (echoHost) CancelTool(string) error                     { return nil }
func (echoHost) CallTool(_ context.Context, _, _ string, arguments []byte) (proto.Outcome, error) {
	return proto.Outcome{Outcome: proto.OutcomeDone, Content: arguments}, nil
}

const fuzzToken = "0123456789012345678901234567890123456789"

// FuzzBody: whatever is posted is answered with a status of the contract and
// with JSON, never with a panic (H7, H8, M4).
func FuzzBody(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, `{"jsonrpc":"2.0","id":"x","method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":1.5e3,"method":"tools/call","params":{"name":"a","arguments":[{"type":"text","text":"\ud800"}]}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`[]`, `[{"jsonrpc":"2.0"}]`, `null`, "\xef\xbb\xbf{}", `{"id":{},"method":"ping","jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`,
	} {
		f.Add([]byte(body))
	}
	log, err := audit.Open(filepath.Join(f.TempDir(), "log"), audit.Options{MaxBytes: 1 << 20, Keep: 1, Secrets: &audit.Secrets{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	defer log.Close()
	front := New(Options{
		Host: echoHost{}, Files: noFiles{}, Audit: log, Log: slog.New(slog.DiscardHandler), Version: "fuzz",
		Token: func() string { return fuzzToken }, AllowOrigin: func(string) bool { return false },
		MaxBody: func() int64 { return 1 << 20 }, AuditRequired: func() bool { return false },
		SetInference: func(context.Context, bool) (Inference, error) { return Inference{}, ErrNoSwitch },
		Remember:     func(context.Context) {},
	})
	post := func(path string, body []byte, session string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+fuzzToken)
		if session != "" {
			r.Header.Set(proto.SessionHeader, session)
		}
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		return w
	}
	session := front.sessions.create()
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, path := range []string{"/", "/host-llm"} {
			w := post(path, body, session)
			allowed := []int{200, 202, 400, 404}
			if path == "/host-llm" {
				allowed = []int{400, 501}
			}
			if !slices.Contains(allowed, w.Code) {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
			if w.Code != http.StatusAccepted && !json.Valid(w.Body.Bytes()) && json.Valid(body) {
				t.Errorf("%s: no JSON: %s", path, w.Body)
			}
			if strings.Contains(w.Body.String(), fuzzToken) && !bytes.Contains(body, []byte(fuzzToken)) {
				t.Errorf("the token is in the answer: %s", w.Body)
			}
		}
	})
}

type noFiles struct{}

func (noFiles) ServeHTTP(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }
func (noFiles) Opens(string) bool                                { return false }
