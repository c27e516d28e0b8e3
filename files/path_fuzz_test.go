package files

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzPath: no spelling of a path, a query or a destination leads out of the share, to what is the
// bridge's own, or to an error of ours (X5, X7).
func FuzzPath(f *testing.F) {
	top := f.TempDir()
	dir := filepath.Join(top, "shared")
	const secret = "what-is-outside"
	must := func(err error) {
		if err != nil {
			f.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	must(os.WriteFile(filepath.Join(top, "outside"), []byte(secret), 0o600))
	must(os.WriteFile(filepath.Join(dir, "a2mcp.json"), []byte(secret), 0o600))
	must(os.WriteFile(filepath.Join(dir, "sub", "file"), []byte("inside"), 0o600))
	_ = os.Symlink(top, filepath.Join(dir, "up"))
	share := New(Options{
		Log: slog.New(slog.DiscardHandler), Home: dir, Cwd: dir, Base: func() (string, string) { return "http://127.0.0.1:1", "" },
		Own: func() []string { return []string{filepath.Join(dir, "a2mcp.json")} }, MaxBody: func() int64 { return 1 << 16 },
	})
	for _, tool := range share.Tools() {
		if tool.Name == "xfer_share" {
			if text, isError := tool.Run(f.Context(), "", []byte(`{"path":"."}`)); isError {
				f.Fatal(text)
			}
		}
	}
	f.Cleanup(func() { share.Close("bridge stopped") })
	methods := []string{"GET", "HEAD", "PUT", "PATCH", "MKCOL", "COPY", "PROPFIND", "LOCK", "MOVE", "DELETE"}
	for i, path := range []string{"/xfer/../outside", "/xfer/%2e%2e/outside", "/xfer/up/outside", "/xfer/sub/..%2f..%2foutside", "/xfer/a2mcp.json",
		"/xfer/sub?zip", "/xfer/?q=a", "/xfer/sub/file?hash", "/xfer/\x00", "/xfer//..//outside", "/xfer/sub%5c..%5c..%5coutside"} {
		f.Add(uint8(i), path, "/xfer/up/new")
	}
	f.Fuzz(func(t *testing.T, method uint8, path, destination string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(u.Path, "/xfer/") {
			return // not a request that reaches the route
		}
		r := httptest.NewRequest(methods[int(method)%len(methods)], "/xfer/", strings.NewReader("x"))
		r.URL, r.RequestURI = u, path
		r.Header["Destination"] = []string{destination}
		r.Header.Set("X-Update-Range", "append")
		w := httptest.NewRecorder()
		share.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError {
			t.Errorf("%s %q: %d %s", r.Method, path, w.Code, w.Body)
		}
		if strings.Contains(w.Body.String(), secret) {
			t.Errorf("%s %q shows what is outside or the bridge's own", r.Method, path)
		}
		if data, err := os.ReadFile(filepath.Join(top, "outside")); err != nil || string(data) != secret {
			t.Fatalf("%s %q changed what is outside: %q, %v", r.Method, path, data, err)
		}
		entries, err := os.ReadDir(top)
		if err != nil || len(entries) != 2 {
			t.Fatalf("%s %q to %q wrote outside: %v", r.Method, path, destination, entries)
		}
	})
}
