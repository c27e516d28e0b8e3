//go:build unix

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The test binary plays cloudflared where it is started under that name. Its
// manner is the name of the folder it lies in, its environment being none of ours
// to use; the files there tell it what to do, and it leaves a line there for each
// start: its pid and arguments.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "cloudflared" {
		dir := filepath.Dir(os.Args[0])
		playCloudflared(dir, filepath.Base(dir))
		syscall.Exit(0) // os.Exit would wait a second under the race detector
	}
	os.Exit(m.Run())
}

// fake is a cloudflared in a folder of its own.
type fake struct {
	t    *testing.T
	path string
}

func newFake(t *testing.T, manner string) *fake {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, path: filepath.Join(t.TempDir(), manner, "cloudflared")}
	if err := os.Mkdir(filepath.Dir(f.path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, f.path); err != nil {
		t.Skip("no links here:", err)
	}
	t.Cleanup(f.checkGone)
	return f
}

func (f *fake) found(context.Context) (string, error) { return f.path, nil }

// sign makes the file that the fake waits for.
func (f *fake) sign(name string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(f.path), name), nil, 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// starts are the lines of all starts so far.
func (f *fake) starts() []string { return f.lines("starts") }

// asked are those that were asked whether they are ready.
func (f *fake) asked() []string { return f.lines("asked") }

func (f *fake) lines(name string) []string {
	data, _ := os.ReadFile(filepath.Join(filepath.Dir(f.path), name))
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")[:strings.Count(string(data), "\n")]
}

// living counts the processes that are still there.
func (f *fake) living() int {
	n := 0
	for _, line := range f.starts() {
		pid, _, _ := strings.Cut(line, " ")
		number, _ := strconv.Atoi(pid)
		state, err := os.ReadFile("/proc/" + pid + "/stat")
		zombie := err == nil && strings.Contains(string(state), ") Z ")
		if ProcessAlive(number) && !zombie {
			n++
		}
	}
	return n
}

func (f *fake) checkGone() {
	if n := f.living(); n > 0 {
		f.t.Errorf("%d of %d processes are still there", n, len(f.starts()))
	}
}

// until waits for something that another process does.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func playCloudflared(dir, manner string) {
	env := strings.Join(os.Environ(), " ")
	config := ""
	for i, arg := range os.Args {
		if arg == "--config" {
			info, _ := os.Stat(os.Args[i+1])
			data, _ := os.ReadFile(os.Args[i+1])
			config = fmt.Sprintf("%o:%s", info.Mode().Perm(), strings.TrimSpace(string(data)))
		}
	}
	note(dir, "starts", os.Getpid(), strings.Join(os.Args[1:], " "), "CONFIG="+config, "LEAK="+strconv.FormatBool(strings.Contains(env, "TUNNEL_")))
	say := func(level, text string) {
		fmt.Fprintln(os.Stderr, time.Now().UTC().Format(time.RFC3339), level, text)
	}
	fail := func(text string) {
		say("ERR", text)
		fmt.Fprintln(os.Stderr, text)
		syscall.Exit(1)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	say("INF", "Requesting new quick Tunnel on trycloudflare.com...")
	switch manner {
	case "limited":
		say("ERR", `Error unmarshaling QuickTunnel response: error code: 1015 error="invalid character 'e' looking for beginning of value" status_code="429 Too Many Requests"`)
		fail("failed to unmarshal quick Tunnel: invalid character 'e' looking for beginning of value")
	case "once":
		if len((&fake{path: filepath.Join(dir, "x")}).starts()) == 1 {
			fail("failed to parse quick Tunnel ID: invalid UUID length: 0")
		}
	case "offline":
		fail(`failed to request quick Tunnel: Post "https://api.trycloudflare.com/tunnel": dial tcp: lookup api.trycloudflare.com: no such host`)
	case "walled":
		fail(`failed to request quick Tunnel: Post "https://api.trycloudflare.com/tunnel": dial tcp 104.16.0.1:443: i/o timeout`)
	case "silent":
		<-asked
		return
	}
	serveMetrics(dir, manner, say)
	switch manner {
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		time.Sleep(time.Minute)
	case "pipe":
		stray := exec.Command("sleep", "5")
		stray.Stdout, stray.Stderr = os.Stdout, os.Stderr
		stray.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = stray.Start()
	case "flood":
		for _, out := range []*os.File{os.Stdout, os.Stderr} {
			go func() {
				for junk := []byte(strings.Repeat("x", 1<<16)); ; {
					_, _ = out.Write(append(junk, "\n2026-01-01T00:00:00Z ERR junk\n"...))
				}
			}()
		}
	case "mortal":
		for !signed(dir, "die") {
			time.Sleep(5 * time.Millisecond)
		}
		fail("it was not to be")
	}
	<-asked
}

// note adds a line to a file.
func note(dir, name string, words ...any) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, words...)
}

func signed(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return !errors.Is(err, os.ErrNotExist)
}

// serveMetrics plays the metrics port and says where it is.
func serveMetrics(dir, manner string, say func(level, text string)) {
	name := fmt.Sprintf("fake-%d.trycloudflare.com", os.Getpid())
	if manner == "elsewhere" {
		name = "trycloudflare.com.example.org"
	}
	say("INF", "|  https://"+name+"  |")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/quicktunnel", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"hostname":%q}`, name) })
	var once sync.Once
	mux.HandleFunc("/ready", func(w http.ResponseWriter, _ *http.Request) {
		once.Do(func() { note(dir, "asked", os.Getpid()) })
		if manner == "never" || manner == "late" && !signed(dir, "register") ||
			manner == "quicless" && !strings.Contains(strings.Join(os.Args, " "), "--protocol http2") {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, `{"status":200,"readyConnections":1}`)
	})
	go func() { _ = http.Serve(listener, mux) }()
	say("INF", "Starting metrics server on "+listener.Addr().String()+"/metrics")
}
