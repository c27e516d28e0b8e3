//go:build unix

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/a2mcp/a2mcp/audit"
)

// rig is a tunnel without a bridge.
type rig struct {
	*tunnel
	*fake

	mu      sync.Mutex
	records []tunnelAction
	told    []string
	stderr  strings.Builder
}

func newRig(t *testing.T, manner string) *rig {
	t.Helper()
	r := &rig{fake: newFake(t, manner)}
	r.tunnel = &tunnel{
		find: r.found, limit: tunnelLimit, after: time.After, log: NewLog(lockedWriter{r}, slog.LevelInfo, &audit.Secrets{}),
		bridge: func() (string, int) { return "http://127.0.0.1:1234", 1234 },
		record: func(a tunnelAction) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			a.URL = hidePID(a.URL)
			r.records = append(r.records, a)
			return nil
		},
		must: func() bool { return false },
		tell: func(_, text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.told = append(r.told, text)
		},
		shown: func() {},
	}
	t.Cleanup(func() { r.stopped("") })
	return r
}

// lockedWriter keeps the log of a rig.
type lockedWriter struct{ r *rig }

func (w lockedWriter) Write(p []byte) (int, error) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	return w.r.stderr.Write(p)
}

func hidePID(url string) string {
	if head, _, ok := strings.Cut(url, "-"); ok {
		return head + "-PID.trycloudflare.com"
	}
	return url
}

// overOnce makes the time of the nth try be over when due says so.
func (r *rig) overOnce(due func(n int) bool) func(time.Duration) <-chan time.Time {
	n := 0
	return func(time.Duration) <-chan time.Time {
		n++
		try, over := n, make(chan time.Time, 1)
		go func() {
			for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
				if due(try) {
					over <- time.Now()
					return
				}
			}
		}()
		return over
	}
}

func (r *rig) stopped(why string) {
	if _, over := r.close(why); over != nil {
		<-over
	}
}

func (r *rig) wantRecords(t *testing.T, want ...tunnelAction) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if diff := cmp.Diff(want, r.records); diff != "" {
		t.Error(diff)
	}
}

const fakeURL = "https://fake-PID.trycloudflare.com"

// T1, T2, T3, T01: one child with a configuration of its own and nothing of the
// operator's; open, told, recorded, closed, gone.
func TestTunnelOpensAndCloses(t *testing.T) {
	t.Setenv("TUNNEL_TOKEN", "leak")
	r := newRig(t, "good")
	url, fresh, err := r.open(t.Context())
	if err != nil || !fresh || hidePID(url) != fakeURL {
		t.Fatalf("%q, %v, %v", url, fresh, err)
	}
	if again, fresh, err := r.open(t.Context()); err != nil || fresh || again != url {
		t.Errorf("the second one: %q, %v, %v", again, fresh, err)
	}
	if r.public() != url || !strings.HasPrefix(r.line(), url+"/ since ") {
		t.Errorf("%q, %q", r.public(), r.line())
	}
	r.stopped("")
	if n := r.living(); n != 0 || r.public() != "" || r.line() != "none" {
		t.Errorf("after the end: %d processes, %q, %q", n, r.public(), r.line())
	}
	starts := r.starts()
	if len(starts) != 1 {
		t.Fatalf("%d starts", len(starts))
	}
	fields := strings.Fields(starts[0])
	config := fields[3]
	want := "tunnel --config FILE --no-autoupdate --metrics 127.0.0.1:0 --grace-period 1s --protocol auto --url http://127.0.0.1:1234 CONFIG=600:{} LEAK=false"
	if got := strings.Replace(strings.Join(fields[1:], " "), config, "FILE", 1); got != want {
		t.Errorf("started with\n%s\nwant\n%s", got, want)
	}
	if _, err := os.Stat(config); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the configuration was left: %v", err)
	}
	r.wantRecords(t, tunnelAction{Action: "start", URL: fakeURL, Port: 1234}, tunnelAction{Action: "stop", URL: fakeURL, Port: 1234})
	const events = "tunnel starting|tunnel open|tunnel closing|tunnel closed|"
	var got strings.Builder
	for line := range strings.Lines(r.stderr.String()) {
		event, _, _ := strings.Cut(strings.TrimPrefix(line, "[a2mcp] "), ":")
		got.WriteString(event + "|")
	}
	if got.String() != events {
		t.Errorf("stderr: %s", got.String())
	}
}

// T2, T04: a name is not a connection.
func TestTunnelIsOpenOnceRegistered(t *testing.T) {
	t.Parallel()
	r := newRig(t, "late")
	opened := make(chan string, 1)
	go func() {
		url, _, _ := r.open(t.Context())
		opened <- url
	}()
	until(t, "it has started", func() bool { return len(r.starts()) == 1 })
	time.Sleep(3 * tunnelPoll) // time enough to be wrong
	select {
	case url := <-opened:
		t.Fatalf("open before it was registered: %s", url)
	default:
	}
	if r.public() != "" || r.line() != "starting" {
		t.Errorf("%q, %q", r.public(), r.line())
	}
	r.sign("register")
	if url := <-opened; hidePID(url) != fakeURL || r.public() != url {
		t.Errorf("opened as %q, is %q", url, r.public())
	}
}

// T2: without a connection in time HTTP/2 is tried once more.
func TestTunnelTriesHTTP2(t *testing.T) {
	t.Parallel()
	r := newRig(t, "quicless")
	r.after = r.overOnce(func(n int) bool { return n == 1 && len(r.asked()) == 1 })
	if _, _, err := r.open(t.Context()); err != nil {
		t.Error(err)
	}
	if n := len(r.starts()); n != 2 {
		t.Errorf("%d starts", n)
	}
}

// T2, T3, T02, T09: failures are told in words, the child is gone by then, and
// the log has cloudflared's own.
func TestTunnelFailures(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		manner string
		words  string // at the beginning
		raw    string // in the record, at the beginning
		starts int
	}{
		{"limited", "rate limited (429/1015): ", "Error unmarshaling QuickTunnel response: error code: 1015", 1},
		{"offline", "no network: ", `failed to request quick Tunnel: Post "https://api.trycloudflare.com/tunnel": dial tcp: lookup`, 1},
		{"walled", "blocked: Cloudflare's service is not reached", "failed to request quick Tunnel: ", 1},
		{"never", "blocked: a name was given", "blocked: a name was given", 2},
		{"silent", "no address within 30s: ", "no address within 30s: ", 1},
		{"elsewhere", "cloudflared was given an address that is not below trycloudflare.com", "trycloudflare.com.example.org", 1},
	} {
		t.Run(c.manner, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.manner)
			switch c.manner {
			case "never":
				r.after = r.overOnce(func(n int) bool { return len(r.asked()) == n })
			case "silent":
				r.after = r.overOnce(func(int) bool { return len(r.starts()) == 1 })
			}
			_, _, err := r.open(t.Context())
			if err == nil || !strings.HasPrefix(err.Error(), c.words) {
				t.Fatalf("got %v", err)
			}
			if n := r.living(); n != 0 {
				t.Errorf("%d processes are left", n)
			}
			if !strings.HasPrefix(r.line(), "failed: "+c.words) {
				t.Errorf("status says %q", r.line())
			}
			if n := len(r.starts()); n != c.starts {
				t.Errorf("%d starts", n)
			}
			if len(r.records) != 1 || r.records[0].Action != "start" || !strings.HasPrefix(r.records[0].Error, c.raw) ||
				len([]rune(r.records[0].Error)) > 120 {
				t.Errorf("recorded %+v", r.records)
			}
			if n := strings.Count(r.stderr.String(), "tunnel failed: "); n != 1 {
				t.Errorf("told %d times:\n%s", n, r.stderr.String())
			}
		})
	}
}

// T17: a failure is not for good.
func TestTunnelAfterAFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t, "once")
	if _, _, err := r.open(t.Context()); err == nil || !strings.Contains(err.Error(), "cloudflared ended before it was connected: exit status 1") {
		t.Errorf("the first time: %v", err)
	}
	if _, fresh, err := r.open(t.Context()); err != nil || !fresh {
		t.Errorf("the second time: %v, %v", fresh, err)
	}
}

// T3: without a binary the operator hears how to bring it.
func TestTunnelWithoutCloudflared(t *testing.T) {
	t.Parallel()
	r := newRig(t, "good")
	s := &sidecar{}
	cfg := defaultConfig()
	cfg.Xfer.Cloudflared = filepath.Join(t.TempDir(), "cloudflared")
	s.cfg.Store(&cfg)
	r.find = s.findCloudflared
	_, _, err := r.open(t.Context())
	if err == nil || !strings.Contains(err.Error(), "correct the path, or remove it to have cloudflared looked for on PATH") {
		t.Errorf("got %v", err)
	}
	r.bridge = func() (string, int) { return "", 0 }
	if _, _, err := r.open(t.Context()); !errors.Is(err, errNoPort) {
		t.Errorf("without a port: %v", err)
	}
}

// T2: neither deafness nor a pipe that a stray holds, nor a flood, keeps a child
// or the one who stops it.
func TestTunnelStubbornChildren(t *testing.T) {
	t.Parallel()
	for _, manner := range []string{"deaf", "pipe", "flood"} {
		t.Run(manner, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, manner)
			if _, _, err := r.open(t.Context()); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			r.stopped("")
			if took := time.Since(began); took > tunnelGrace+2*time.Second {
				t.Errorf("took %v", took)
			}
			if n := r.living(); n != 0 {
				t.Errorf("%d processes are left", n)
			}
		})
	}
}

// T3: a child that dies is told of, its address is void, and nobody starts
// another.
func TestTunnelDies(t *testing.T) {
	t.Parallel()
	r := newRig(t, "mortal")
	if _, _, err := r.open(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.sign("die")
	until(t, "the end is known", func() bool { return strings.HasPrefix(r.line(), "failed: cloudflared ended by itself") })
	if r.public() != "" || len(r.starts()) != 1 {
		t.Errorf("%q, %d starts", r.public(), len(r.starts()))
	}
	r.wantRecords(t, tunnelAction{Action: "start", URL: fakeURL, Port: 1234},
		tunnelAction{Action: "stop", URL: fakeURL, Port: 1234, Error: "cloudflared ended by itself: exit status 1"})
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.told) != 1 || !strings.HasPrefix(r.told[0], "the tunnel is gone: cloudflared ended by itself") {
		t.Errorf("told %q", r.told)
	}
}

// L5: where the log is required there is no tunnel without its record.
func TestTunnelNeedsItsRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, "good")
	r.must = func() bool { return true }
	r.record = func(tunnelAction) error { return io.ErrShortWrite }
	if _, _, err := r.open(t.Context()); err == nil || err.Error() != "audit log not writable" || r.public() != "" {
		t.Errorf("got %v, %q", err, r.public())
	}
}

// T1: of many commands at once comes one child.
func TestTunnelOneChild(t *testing.T) {
	t.Parallel()
	r := newRig(t, "good")
	var all sync.WaitGroup
	var mu sync.Mutex
	urls, first := map[string]bool{}, 0
	for range 8 {
		all.Go(func() {
			url, fresh, err := r.open(t.Context())
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			urls[url] = true
			if fresh {
				first++
			}
		})
	}
	all.Wait()
	if len(urls) != 1 || first != 1 || len(r.starts()) != 1 {
		t.Errorf("%d addresses, %d first ones, %d children", len(urls), first, len(r.starts()))
	}
}

// T2, T06: a stop at any point of the start leaves nothing.
func TestTunnelStopAtAnyPoint(t *testing.T) {
	t.Parallel()
	r := newRig(t, "good")
	for range 20 {
		opened := make(chan error, 1)
		go func() {
			_, _, err := r.open(t.Context())
			opened <- err
		}()
		time.Sleep(time.Duration(rand.Int64N(int64(300 * time.Millisecond)))) // the random point
		r.stopped("")
		if n := r.living(); n != 0 {
			t.Fatalf("%d processes are left", n)
		}
		// It may have come before the start, or after the end of it.
		r.stopUntil(opened)
	}
	for _, a := range r.records {
		if a.Action == "start" && (a.URL == "") != (a.Error == errClosedBefore.Error()) {
			t.Errorf("recorded %+v", a)
		}
	}
}

// stopUntil stops until the one who opens has been answered.
func (r *rig) stopUntil(opened chan error) {
	for {
		select {
		case <-opened:
			r.stopped("")
			return
		case <-time.After(time.Millisecond):
			r.stopped("")
		}
	}
}

// T1: start and stop in steps of 50 ms end in what was said last.
func TestTunnelInHaste(t *testing.T) {
	t.Parallel()
	r := newRig(t, "good")
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() { _, _, _ = r.open(t.Context()) })
		time.Sleep(50 * time.Millisecond)
		all.Go(func() { r.stopped("") })
		time.Sleep(50 * time.Millisecond)
	}
	all.Wait()
	r.stopped("")
	if n := r.living(); n != 0 || r.line() != "none" {
		t.Errorf("%d processes, %q", n, r.line())
	}
	if _, _, err := r.open(t.Context()); err != nil {
		t.Error(err)
	}
	r.close("") // not waited for: the next one waits
	url, fresh, err := r.open(t.Context())
	if err != nil || !fresh || r.public() != url || r.living() != 1 {
		t.Errorf("%q, %v; %q, %d processes", url, err, r.public(), r.living())
	}
	depth := 0
	for _, a := range r.records { // never two at once
		switch {
		case a.Action == "start" && a.Error == "":
			depth++
		case a.Action == "stop":
			depth--
		}
		if depth < 0 || depth > 1 {
			t.Fatalf("recorded %+v", r.records)
		}
	}
}

// T2: only a name directly below trycloudflare.com, over https, is an address.
func TestTunnelNames(t *testing.T) {
	for name, good := range map[string]bool{
		"four-odd-words-here.trycloudflare.com": true, "a.trycloudflare.com": true, "a.b.trycloudflare.com": false, "trycloudflare.com": false,
		".trycloudflare.com": false, "a.trycloudflare.com.example.org": false, "a.trycloudflare.com/x": false, "a@b.trycloudflare.com": false,
		"http://a.trycloudflare.com": false, "evil.example": false, "a.trycloudflare.com\n": false, "-.trycloudflare.com": false, "": false,
	} {
		if quickName.MatchString(name) != good {
			t.Errorf("%q: %v", name, !good)
		}
	}
}

// What is kept of cloudflared's lines is bounded, and is what it complained of.
func TestTunnelOutput(t *testing.T) {
	o := &output{log: slog.New(slog.DiscardHandler)}
	for n := range 100 {
		o.line("stderr", fmt.Sprintf("2026-01-01T00:00:00Z ERR complaint %d", n))
		o.line("stderr", "2026-01-01T00:00:00Z INF chatter")
	}
	o.line("stderr", "2026-01-01T00:00:00Z INF Starting metrics server on 10.0.0.1:1/metrics")
	o.line("stderr", "2026-01-01T00:00:00Z INF Starting metrics server on 127.0.0.1:20/metrics")
	said := o.complained()
	if len(said) != complaints || said[complaints-1] != "complaint 99" || o.metrics() != "127.0.0.1:20" {
		t.Errorf("%q, %q", said, o.metrics())
	}
	var fault *tunnelFault
	if err := o.fault(context.Canceled); !errors.As(err, &fault) || fault.raw != "complaint 99" {
		t.Errorf("%v", err)
	}
}

// T01, T02, T2: the real cloudflared, where CLOUDFLARED is its path, with a
// service of ours that gives the names and an edge that is not there.
func TestTunnelOfTheRealCloudflared(t *testing.T) {
	path := os.Getenv("CLOUDFLARED")
	if path == "" {
		t.Skip("CLOUDFLARED does not name one")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("TUNNEL_URL", "http://127.0.0.1:9")
	if err := os.MkdirAll(filepath.Join(home, ".cloudflared"), 0o700); err != nil {
		t.Fatal(err)
	}
	theirs := "ingress:\n  - service: http_status:404\n"
	if err := os.WriteFile(filepath.Join(home, ".cloudflared", "config.yml"), []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	answers := make(chan func(http.ResponseWriter), 3)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { (<-answers)(w) }))
	defer service.Close()
	r := newRig(t, "unused")
	r.find = func(context.Context) (string, error) { return path, nil }
	r.after = func(time.Duration) <-chan time.Time { return time.After(5 * time.Second) }
	r.log = NewLog(lockedWriter{r}, slog.LevelDebug, &audit.Secrets{})
	r.args = []string{"--quick-service", service.URL, "--edge", "127.0.0.1:1"}

	answers <- func(w http.ResponseWriter) {
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, "error code: 1015")
	}
	if _, _, err := r.open(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "rate limited (429/1015)") {
		t.Errorf("of a 429 it made %v", err)
	}
	for range 2 {
		answers <- func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"success":true,"result":{"id":"0189dc3e-86e5-7e58-a3e8-0b9a3e6f1c11","name":"x","hostname":"odd-words.trycloudflare.com","account_tag":"a","secret":"c2VjcmV0"},"errors":[]}`)
		}
	}
	if _, _, err := r.open(t.Context()); !errors.Is(err, errNoConnection) {
		t.Errorf("of an edge that is not there it made %v", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if said := r.stderr.String(); strings.Contains(said, filepath.Join(home, ".cloudflared")) || !strings.Contains(said, "a2mcp-tunnel-") {
		t.Errorf("it did not follow our configuration:\n%s", said)
	}
}
