package tests

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/a2mcp/a2mcp/sidecar"
)

var update = flag.Bool("update", false, "rewrite the stories with what came out")

// TestReplay plays every story in memory, with a fake clock, where a goroutine
// that is left over fails, and all but those that need that also against the
// built binary over real pipes and sockets. The stories name the numbers of the
// contract that they hold.
func TestReplay(t *testing.T) {
	if *update && os.Getenv("CI") != "" {
		t.Fatal("stories are not rewritten in CI")
	}
	paths, err := filepath.Glob("testdata/replay/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name+"/memory", func(t *testing.T) {
			st := mustRead(t, path)
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				check(t, st, newMemory(t), dir, *update)
			})
		})
		t.Run(name+"/real", func(t *testing.T) {
			st := mustRead(t, path)
			if st.onlyInMemory() || *update {
				t.Skip("this story needs a fake clock or a fake system")
			}
			check(t, st, &realStage{t: t}, t.TempDir(), false)
		})
	}
}

func mustRead(t *testing.T, path string) *story {
	t.Helper()
	st, err := readStory(path)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// stderrOf is a stage that keeps what the bridge said.
type stderrOf interface{ stderr() string }

// check plays a story and compares, or rewrites it.
func check(t *testing.T, st *story, on stage, dir string, rewrite bool) {
	t.Helper()
	p := newPlayer(t, st, on, dir)
	played := p.play()
	for _, last := range p.collect() {
		if last.stream == "exit" && last.text != "exit 0" {
			t.Errorf("the bridge ended with %s", last.text)
		}
	}
	log, _ := os.ReadFile(filepath.Join(dir, "a2mcp.log"))
	got := map[string]string{
		"story":  script(st.steps, played),
		"audit":  p.names.hide(string(log)),
		"stderr": p.names.hide(on.(stderrOf).stderr()),
	}
	if rewrite {
		if err := st.rewrite(got); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range []string{"story", "audit", "stderr"} {
		if want := st.file(name); want != got[name] {
			t.Errorf("%s differs (-want +got):\n%s", name, cmp.Diff(strings.Split(want, "\n"), strings.Split(got[name], "\n")))
		}
	}
	for _, text := range got { // A5, in whatever spelling
		for _, spelling := range []string{
			fixedToken, hex.EncodeToString([]byte(fixedToken)), base64.StdEncoding.EncodeToString([]byte(fixedToken)), "Bearer Replay",
		} {
			if strings.Contains(text, spelling) {
				t.Errorf("the token shows as %s", spelling)
			}
		}
	}
}

// memory is a stage within a synctest bubble: pipes, a network and a clock that
// are not real.
type memory struct {
	t       *testing.T
	network *memNetwork
	said    *lockedText
	changed atomic.Pointer[func()]
	dead    atomic.Bool
}

func newMemory(t *testing.T) *memory {
	return &memory{t: t, network: newMemNetwork(), said: &lockedText{}}
}

const (
	takenPort     = 20900
	forbiddenPort = 80
)

func (m *memory) portNames() map[string]string {
	return map[string]string{"<taken1>": strconv.Itoa(takenPort), "<forbidden1>": strconv.Itoa(forbiddenPort)}
}

func (m *memory) start(_ string, env []string) bridgeRun {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		err := sidecar.Run(context.Background(), sidecar.Options{
			In: inR, Out: outW, Stderr: m.said, Version: "test",
			Getenv: func(name string) string {
				for _, line := range env {
					if value, ok := strings.CutPrefix(line, name+"="); ok {
						return value
					}
				}
				return ""
			},
			Listen:    m.network.listen,
			HostAlive: func(int) bool { return !m.dead.Load() },
			Watch: func(ctx context.Context, _ string, changed func()) error {
				m.changed.Store(&changed)
				<-ctx.Done()
				return ctx.Err()
			},
		})
		code := 0
		if errors.Is(err, sidecar.ErrNoHost) {
			code = 2
		} else if err != nil {
			code = 1
		}
		inR.Close()
		outW.Close()
		ended <- code
	}()
	return bridgeRun{in: inW, out: outR, ended: ended}
}

func (m *memory) dial(address string) error {
	conn, err := m.network.dial(address)
	if err == nil {
		conn.Close()
	}
	return err
}

func (m *memory) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(_ context.Context, _, address string) (net.Conn, error) { return m.network.dial(address) },
	}}
}

func (m *memory) settle(wanted func() bool) {
	synctest.Wait()
	wanted()
}

func (m *memory) edited()              { (*m.changed.Load())() }
func (m *memory) pass(d time.Duration) { time.Sleep(d) }
func (m *memory) hostDies()            { m.dead.Store(true) }
func (m *memory) stderr() string       { return m.said.String() }

// realStage is the built binary, real pipes and a real socket.
type realStage struct {
	t    *testing.T
	said lockedText
}

func (r *realStage) portNames() map[string]string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { listener.Close() })
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return map[string]string{"<taken1>": port}
}

func (r *realStage) start(_ string, env []string) bridgeRun {
	cmd := exec.Command(binary(r.t), "sidecar")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	cmd.Stderr = &r.said
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	outR, outW, err := os.Pipe() // not StdoutPipe, which Wait would close under the reader
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.Stdout = outW
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	outW.Close()
	ended := make(chan int, 1)
	go func() {
		_ = cmd.Wait()
		ended <- cmd.ProcessState.ExitCode()
	}()
	return bridgeRun{in: in, out: outR, ended: ended}
}

func (r *realStage) dial(address string) error {
	conn, err := net.Dial("tcp", address)
	if err == nil {
		conn.Close()
	}
	return err
}

func (r *realStage) client() *http.Client { return &http.Client{Transport: &http.Transport{}} }

// settle waits until what is wanted has come out, and a little for what is not.
func (r *realStage) settle(wanted func() bool) {
	deadline := time.Now().Add(10 * time.Second)
	for !wanted() && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(5 * time.Millisecond)
}

func (r *realStage) edited()            {}
func (r *realStage) pass(time.Duration) { r.t.Fatal("no time passes here") }
func (r *realStage) hostDies()          { r.t.Fatal("the host does not die here") }
func (r *realStage) stderr() string     { return r.said.String() }

type lockedText struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// memNetwork is a network of one machine in memory.
type memNetwork struct {
	mu   sync.Mutex
	next int
	open map[int]*memListener
	most int // listeners at a time, so far
}

func newMemNetwork() *memNetwork { return &memNetwork{next: 20001, open: map[int]*memListener{}} }

func (n *memNetwork) listen(_, address string) (net.Listener, error) {
	if host, _, _ := net.SplitHostPort(address); strings.HasSuffix(host, ".invalid") { // RFC 6761, section 6.4
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: host}}
	}
	_, number, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case port == forbiddenPort:
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EACCES)}
	case port == takenPort || n.open[port] != nil:
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	case port == 0:
		port = n.next
		n.next++
	}
	l := &memListener{network: n, port: port, conns: make(chan net.Conn), closed: make(chan struct{})}
	n.open[port] = l
	n.most = max(n.most, len(n.open))
	return l, nil
}

func (n *memNetwork) dial(address string) (net.Conn, error) {
	_, number, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	l := n.open[port]
	n.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	if l == nil {
		return nil, refused
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, refused
	}
}

type memListener struct {
	network *memNetwork
	port    int
	conns   chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.network.mu.Lock()
		defer l.network.mu.Unlock()
		delete(l.network.open, l.port)
	})
	return nil
}

func (l *memListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.port} }
