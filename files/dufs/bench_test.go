package dufs

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/a2mcp/a2mcp/files"
)

const benchSize = 128 << 20

// BenchmarkRoute compares a download and an upload of 128 MiB over loopback with the same through the
// way to a child. A second instance of the built-in server stands for dufs, so that the difference is
// the way alone.
func BenchmarkRoute(b *testing.B) {
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "big"), make([]byte, benchSize), 0o600); err != nil {
		b.Fatal(err)
	}
	var direct *httptest.Server
	share := files.New(files.Options{
		Log: slog.New(slog.DiscardHandler), Home: dir, Cwd: dir, Base: func() (string, string) { return direct.URL, "" },
		MaxBody: func() int64 { return benchSize },
	})
	direct = httptest.NewServer(share)
	defer direct.Close()
	for _, tool := range share.Tools() {
		if tool.Name == "xfer_share" {
			if text, isError := tool.Run(context.Background(), "", []byte(`{"path":"."}`)); isError {
				b.Fatal(text)
			}
		}
	}
	defer share.Close("bridge stopped")
	child := &Server{port: direct.Listener.Addr().(*net.TCPAddr).Port, log: slog.New(slog.DiscardHandler), ours: map[string]bool{}}
	route := httptest.NewServer(child.proxy())
	defer route.Close()

	for _, way := range []struct{ name, url string }{{"direct", direct.URL}, {"child", route.URL}} {
		b.Run("download/"+way.name, func(b *testing.B) {
			b.SetBytes(benchSize)
			for b.Loop() {
				exchange(b, http.MethodGet, way.url+"/xfer/big", nil, http.StatusOK)
			}
		})
		b.Run("upload/"+way.name, func(b *testing.B) {
			b.SetBytes(benchSize)
			n := 0
			for b.Loop() {
				n++
				name := fmt.Sprintf("up-%s-%d-%d", way.name, os.Getpid(), n)
				exchange(b, http.MethodPut, way.url+"/xfer/"+name, io.LimitReader(zeros{}, benchSize), http.StatusCreated)
				b.StopTimer()
				_ = os.Remove(filepath.Join(dir, name))
				b.StartTimer()
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func exchange(b *testing.B, method, url string, body io.Reader, status int) {
	b.Helper()
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		b.Fatal(err)
	}
	if body != nil {
		req.ContentLength = benchSize
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != status {
		b.Fatal(resp.Status, err)
	}
}
