package obtain

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// T14: whatever the server does, the error names the asset, its pinned digest and the way out, the
// install is audited, and nothing that can be run stays behind.
func TestBadServers(t *testing.T) {
	evil := []byte("#!/bin/sh\nevil\n")
	plain := httptest.NewServer(serveBytes(script))
	defer plain.Close()
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		words   []string
	}{
		"not there":   {http.NotFound, []string{"404 Not Found"}},
		"wrong bytes": {serveBytes(evil), []string{"sha256 " + digest(evil), "pinned is " + digest(script)}},
		"nothing":     {serveBytes(nil), []string{"the 0 bytes"}},
		"a page":      {serveBytes([]byte("<html>sign in to this network</html>")), []string{"pinned is"}},
		"oversized, and says so": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "68157440")
			_, _ = w.Write(script)
		}, []string{"more than 64 MB"}},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write(script)
		}, []string{"reading after 17 bytes", "unexpected EOF"}},
		"a part": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(script)
		}, []string{"206"}},
		"redirect off https": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, plain.URL+"/secret?sig=hidden", http.StatusFound)
		}, []string{"not https"}},
		"redirects for ever": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}, []string{"redirected more than 5 times"}},
		"compressed": {func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") == "identity" {
				w.WriteHeader(http.StatusTeapot)
			}
		}, []string{"418"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.handler)
			b.fails(t, b.tool("dufs-bare", script, nil), c.words...)
			if text := b.audited[0].Err.Error(); strings.Contains(text, "hidden") {
				t.Errorf("shows a signed address: %s", text)
			}
		})
	}
	t.Run("oversized", func(t *testing.T) {
		b := newBench(t, nil)
		b.limit = 1 << 20
		b.Client = &http.Client{Transport: memory(make([]byte, b.limit+1))}
		b.fails(t, b.tool("dufs-bare", script, nil), "more than 1 MB")
	})
	t.Run("refuses", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		must(err)
		listener.Close()
		b := newBench(t, nil)
		b.url = "https://" + listener.Addr().String() + "/"
		b.fails(t, b.tool("dufs-bare", script, nil), "refused")
	})
	t.Run("no certificate that is trusted", func(t *testing.T) {
		b := newBench(t, serveBytes(script))
		b.Client = nil
		b.fails(t, b.tool("dufs-bare", script, nil), "certificate")
	})
	t.Run("not https", func(t *testing.T) {
		b := newBench(t, nil)
		b.url = plain.URL + "/"
		b.fails(t, b.tool("dufs-bare", script, nil), "not https")
	})
}

// T14: the size of the report, without a length that would give it away.
func TestOversizedSoak(t *testing.T) {
	if os.Getenv("A2MCP_SOAK") == "" {
		t.Skip("A2MCP_SOAK is not set")
	}
	b := newBench(t, serveBytes(make([]byte, 65<<20)))
	tool := b.tool("dufs-bare", script, nil)
	asset := tool.Assets[testPlatform]
	asset.Size = maxDownload // room is made once, as for a real release
	tool.Assets[testPlatform] = asset
	b.fails(t, tool, "more than 64 MB")
}

// X9: redirects are followed, as releases of GitHub have one.
func TestRedirect(t *testing.T) {
	b := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/dufs-bare" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		_, _ = w.Write(script)
	})
	b.works(t, b.tool("dufs-bare", script, nil), true, script)
}

// T14: silence is noticed in the handshake, before the headers and in the body.
func TestSilentServers(t *testing.T) {
	deaf, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	defer deaf.Close() // connections are made by the system and never taken
	for name, handler := range map[string]http.HandlerFunc{
		"handshake": nil,
		"headers":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"body": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write(make([]byte, 1<<20))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, handler)
			if handler == nil {
				b.url = "https://" + deaf.Addr().String() + "/"
			}
			b.idle = 100 * time.Millisecond
			b.fails(t, b.tool("dufs-bare", script, nil), "no byte arrived for 100ms")
		})
	}
}

// memory answers with its bytes, without a length.
type memory []byte

func (m memory) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Body: io.NopCloser(bytes.NewReader(m)), Request: r}, nil
}

// slow answers with one byte per step, for as long as after says; then nothing more comes.
type slow struct {
	step  time.Duration
	bytes int
	ctx   context.Context
}

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	s.ctx = r.Context()
	return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Body: io.NopCloser(s), Request: r}, nil
}

func (s *slow) Read(p []byte) (int, error) {
	var next <-chan time.Time
	if s.bytes > 0 {
		next = time.After(s.step)
	}
	select {
	case <-next:
		s.bytes--
		p[0] = '.'
		return 1, nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

// X9: 30 s with no byte, 10 min in all, with the clock of the test; progress no more than every few seconds.
func TestGates(t *testing.T) {
	for _, c := range []struct {
		server *slow
		after  time.Duration
		word   string
	}{
		{&slow{step: time.Second, bytes: 90}, 2 * time.Minute, "no byte arrived for 30s"},
		{&slow{step: 29 * time.Second, bytes: 3}, 117 * time.Second, "no byte arrived for 30s"},
		{&slow{step: time.Second, bytes: 1 << 20}, 10 * time.Minute, "not done after 10m0s"},
	} {
		b := newBench(t, nil)
		var log bytes.Buffer
		b.Log = slog.New(slog.NewTextHandler(&log, nil))
		tool := b.tool("dufs-bare", script, nil)
		synctest.Test(t, func(t *testing.T) {
			b.Client = &http.Client{Transport: c.server}
			began := time.Now()
			b.fails(t, tool, c.word)
			if took := time.Since(began); took != c.after {
				t.Errorf("%s after %v", c.word, took)
			}
		})
		if lines := strings.Count(log.String(), "msg=download"); lines < 4 || lines > int(c.after/progressEvery)+1 {
			t.Errorf("%d lines of progress in %v:\n%s", lines, c.after, log.String())
		}
	}
}

// X9: who asked can give up, in the download and while another has the lock.
func TestGivingUp(t *testing.T) {
	started := make(chan struct{})
	b := newBench(t, func(_ http.ResponseWriter, r *http.Request) {
		close(started)
		<-r.Context().Done()
	})
	tool := b.tool("dufs-bare", script, nil)
	first, cancelFirst := context.WithCancelCause(t.Context())
	defer cancelFirst(nil)
	ended := make(chan error)
	go func() {
		_, err := b.Find(first, tool, "")
		ended <- err
	}()
	<-started
	second, cancelSecond := context.WithCancel(t.Context())
	cancelSecond()
	if _, err := b.Find(second, tool, ""); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "waiting for another install") {
		t.Errorf("the one that waits: %v", err)
	}
	why := errors.New("stopping")
	cancelFirst(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("the one that downloads: %v", err)
	}
	if len(b.audited) != 1 || b.audited[0].Err == nil || len(executables(t, b.AgentDir, b.DataDir)) != 0 {
		t.Errorf("audited %+v", b.audited)
	}
}
