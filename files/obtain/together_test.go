package obtain

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// X9: of any number that look for a tool at once one downloads it; two agent folders with one data
// folder do not get in each other's way, and two tools are both registered.
func TestTogether(t *testing.T) {
	b := newBench(t, serveBytes(script))
	other := b.finder(t.TempDir(), b.DataDir, b.Client)
	dufs := b.tool("dufs-bare", script, nil)
	cloudflared := dufs
	cloudflared.Name = "cloudflared"
	var wg sync.WaitGroup
	var installed [2]atomic.Int32
	for i := range 40 {
		wg.Go(func() {
			f, tool := []*Finder{b.Finder, other}[i%2], []Tool{dufs, cloudflared}[i/2%2]
			found, err := f.Find(t.Context(), tool, "")
			if err != nil || filepath.Base(found.Path) != tool.Name+"-9.9.9" {
				t.Errorf("%+v, %v", found, err)
			}
			if found.Installed {
				installed[i/2%2].Add(1)
			}
		})
	}
	wg.Wait()
	for i := range installed {
		if n := installed[i].Load(); n < 1 || n > 2 { // one for each agent folder at most
			t.Errorf("installed %d times", n)
		}
	}
	for _, f := range []*Finder{b.Finder, other} {
		if reg, err := f.readRegister(); err != nil || len(reg.Installs) != 2 {
			t.Errorf("register %+v, %v", reg, err)
		}
	}
	if len(b.audited) != 4 || slices.ContainsFunc(b.audited, func(in Install) bool { return in.Err != nil }) {
		t.Errorf("audited %+v", b.audited)
	}
	if left := executables(t, b.DataDir, b.AgentDir); len(left) != 2 && runtime.GOOS != "windows" {
		t.Errorf("left behind: %v", left)
	}
}

// job is what TestMain is told to do in another process.
type job struct {
	AgentDir, DataDir string
	Certificate       []byte
	Tools             []Tool
}

// TestMain is another bridge if it is told so.
func TestMain(m *testing.M) {
	text := os.Getenv("OBTAIN_JOB")
	if text == "" {
		os.Exit(m.Run())
	}
	var j job
	must(json.Unmarshal([]byte(text), &j))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(j.Certificate)
	f := Finder{AgentDir: j.AgentDir, DataDir: j.DataDir, platform: testPlatform,
		Client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}}
	for _, tool := range j.Tools {
		_, err := f.Find(context.Background(), tool, "")
		must(err)
	}
}

// X9: processes that share a register lose none of each other's entries and download nothing twice.
func TestProcesses(t *testing.T) {
	b := newBench(t, serveBytes(script))
	j := job{AgentDir: b.AgentDir, DataDir: b.DataDir}
	var want []Tool
	for i := range 8 {
		tool := b.tool("dufs-bare", script, nil)
		tool.Version = string(rune('a' + i))
		want = append(want, tool)
	}
	j.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.certificate})
	var wg sync.WaitGroup
	for i := range 4 {
		j.Tools = slices.Concat(want[2*i:], want[:2*i])
		text, err := json.Marshal(j)
		must(err)
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "OBTAIN_JOB="+string(text))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	reg, err := b.readRegister()
	if err != nil || len(reg.Installs) != len(want) || int(b.hits.Load()) != len(want) {
		t.Errorf("%d downloads, register %+v, %v", b.hits.Load(), reg, err)
	}
}

// R09: what is installed can be run at once, however many children the process starts meanwhile.
func TestRunAtOnce(t *testing.T) { runAtOnce(t, 10, 4) }

// R09: while a child is being started nothing is opened for writing that it would inherit.
func TestNoForkWhileWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dufs")
	written := make(chan error, 1)
	syscall.ForkLock.Lock()
	go func() { written <- place(path, script) }()
	select {
	case err := <-written:
		written <- err
		t.Error("written while a child was being started")
	case <-time.After(50 * time.Millisecond): // too short to see a fault, never too long
	}
	syscall.ForkLock.Unlock()
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// R09: with the numbers of the report.
func TestRunAtOnceSoak(t *testing.T) {
	if os.Getenv("A2MCP_SOAK") == "" {
		t.Skip("A2MCP_SOAK is not set")
	}
	runAtOnce(t, 200, 50)
}

func runAtOnce(t *testing.T, installs, spawners int) {
	if runtime.GOOS == "windows" {
		t.Skip("a script")
	}
	spawn, err := exec.LookPath("true")
	must(err)
	b := newBench(t, nil)
	// Large enough for children to begin while it is written.
	binary := append(slices.Clone(script), make([]byte, 1<<20)...)
	b.Client = &http.Client{Transport: memory(binary)}
	tool := b.tool("dufs-bare", binary, nil)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range spawners {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					_ = exec.Command(spawn).Run()
				}
			}
		})
	}
	defer wg.Wait()
	defer close(done)
	for range installs {
		found := b.works(t, tool, true, binary)
		if err := exec.Command(found.Path).Run(); err != nil {
			t.Fatal(err)
		}
		must(os.Remove(found.Path))
	}
}

// X9: what an install that was killed left behind goes with the next.
func TestSweep(t *testing.T) {
	b := newBench(t, serveBytes(script))
	old := write(t, filepath.Join(b.DataDir, ".dufs-9.9.9.123.tmp"), script, 0o755)
	young := write(t, filepath.Join(b.DataDir, ".dufs-9.9.9.124.tmp"), script, 0o600)
	must(os.Chtimes(old, time.Time{}, time.Now().Add(-time.Hour)))
	b.works(t, b.tool("dufs-bare", script, nil), true, script)
	if _, err := os.Stat(old); err == nil {
		t.Error("still there")
	}
	if _, err := os.Stat(young); err != nil {
		t.Error("that of another is gone")
	}
}
