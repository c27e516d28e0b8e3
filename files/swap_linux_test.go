package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

// exchangeNames gives two names each other's places in one step.
func exchangeNames(a, b string) error {
	number := map[string]uintptr{"amd64": 316, "arm64": 276}[runtime.GOARCH] // renameat2
	if number == 0 {
		return errors.ErrUnsupported
	}
	pa, err := syscall.BytePtrFromString(a)
	if err != nil {
		return err
	}
	pb, err := syscall.BytePtrFromString(b)
	if err != nil {
		return err
	}
	const atCwd, both = ^uintptr(99), 2 // AT_FDCWD, RENAME_EXCHANGE
	_, _, errno := syscall.Syscall6(number, atCwd, uintptr(unsafe.Pointer(pa)), atCwd, uintptr(unsafe.Pointer(pb)), both, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// flip exchanges name and name.other in the shared folder until the test's requests are through.
func (g *rig) flip(stop <-chan struct{}, done *sync.WaitGroup, names ...string) {
	g.t.Helper()
	for _, name := range names {
		a := filepath.Join(g.dir, name)
		if err := exchangeNames(a, a+".other"); err != nil {
			g.t.Skip("names cannot be exchanged here: ", err)
		}
	}
	done.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, name := range names {
				a := filepath.Join(g.dir, name)
				if err := exchangeNames(a, a+".other"); err != nil {
					g.t.Error(err)
					return
				}
			}
		}
	})
}

// race sends requests from several sides until each was sent rounds times, and returns how often each status
// came. Requests get the number of the round in place of N. No answer may hold any of secrets.
func (g *rig) race(secrets []string, requests []trial) map[int]int {
	var count sync.Map
	var all sync.WaitGroup
	var round atomic.Int64
	for range 4 {
		all.Go(func() {
			for {
				n := round.Add(1)
				if n > int64(rounds()) {
					return
				}
				for _, r := range requests {
					header := make([]string, len(r.header))
					for i, h := range r.header {
						header[i] = strings.ReplaceAll(h, "N", fmt.Sprint(n))
					}
					path := strings.ReplaceAll(r.path, "N", fmt.Sprint(n))
					a := g.try(r.method, path, r.body, header...)
					total, _ := count.LoadOrStore(a.status, new(atomic.Int64))
					total.(*atomic.Int64).Add(1)
					if a.status >= 500 {
						g.t.Errorf("%s %s: %d %s", r.method, path, a.status, a.body)
					}
					for _, secret := range secrets {
						if strings.Contains(a.body, secret) {
							g.t.Errorf("%s %s: %q in %d bytes of answer %d", r.method, path, secret, len(a.body), a.status)
						}
					}
				}
			}
		})
	}
	all.Wait()
	statuses := map[int]int{}
	count.Range(func(status, n any) bool { statuses[status.(int)] = int(n.(*atomic.Int64).Load()); return true })
	return statuses
}

// TestSwappedOutside holds X5, F14: names that turn into links to the outside and back, as fast as the
// system can, never lead a request there.
func TestSwappedOutside(t *testing.T) {
	g := newRig(t)
	outside := t.TempDir()
	secret := "SECRET-" + strings.Repeat("x", 123457-7)
	sum := sha256.Sum256([]byte(secret))
	for _, name := range []string{"f", "only-outside", "app", "sub/g"} {
		os.MkdirAll(filepath.Dir(filepath.Join(outside, name)), 0o755)
		if err := os.WriteFile(filepath.Join(outside, name), []byte(secret), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, outside)
	g.write("d/f", "inside")
	g.write("d/sub/g", "inside")
	g.write("f", "inside")
	for name, to := range map[string]string{"d.other": outside, "f.other": filepath.Join(outside, "f")} {
		if err := os.Symlink(to, filepath.Join(g.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	g.open(map[string]any{})
	if a := g.do("PUT", "/xfer/d/app", "made"); a.status != 201 {
		t.Fatal(a)
	}
	stop := make(chan struct{})
	var flipping sync.WaitGroup
	g.flip(stop, &flipping, "d", "f")
	statuses := g.race([]string{"SECRET", "only-outside", "123457", hex.EncodeToString(sum[:])}, []trial{
		{method: "GET", path: "/xfer/d/f"}, {method: "GET", path: "/xfer/f"}, {method: "HEAD", path: "/xfer/d/f"},
		{method: "GET", path: "/xfer/d/f?hash"}, {method: "GET", path: "/xfer/d/f?json"}, {method: "GET", path: "/xfer/f?hash"},
		{method: "GET", path: "/xfer/d/"}, {method: "GET", path: "/xfer/d?json"}, {method: "GET", path: "/xfer/d?simple"},
		{method: "GET", path: "/xfer/d?zip"}, {method: "GET", path: "/xfer/d?q=outside&json"}, {method: "GET", path: "/xfer/d/sub/g"},
		{method: "GET", path: "/xfer/?json"}, {method: "GET", path: "/xfer/?q=g&json"}, {method: "GET", path: "/xfer/?zip"},
		{method: "PROPFIND", path: "/xfer/d", header: []string{"Depth", "1"}}, {method: "PROPFIND", path: "/xfer/", header: []string{"Depth", "1"}},
		{method: "PUT", path: "/xfer/d/put-N", body: "p"}, {method: "PUT", path: "/xfer/d/deep-N/x/put", body: "p"},
		{method: "PATCH", path: "/xfer/d/app", header: []string{"X-Update-Range", "append"}, body: "+"},
		{method: "COPY", path: "/xfer/d/f", header: []string{"Destination", "/xfer/from-N"}},
		{method: "COPY", path: "/xfer/f", header: []string{"Destination", "/xfer/d/to-N"}},
		{method: "MKCOL", path: "/xfer/d/mk-N"}, {method: "MKCOL", path: "/xfer/d/mks-N/a/b"},
		{method: "LOCK", path: "/xfer/d/lock-N"}, {method: "PROPPATCH", path: "/xfer/d/f"},
	})
	close(stop)
	flipping.Wait()
	t.Log(statuses)
	if statuses[200] == 0 || statuses[201] == 0 || statuses[404]+statuses[409] == 0 {
		t.Error("the race is won by one side: the test does not test")
	}
	if diff := cmp.Diff(before, tree(t, outside)); diff != "" {
		t.Errorf("the outside changed: %.2000s", diff)
	}
	for name, content := range tree(t, g.dir) {
		if strings.Contains(content, "SECRET") {
			t.Errorf("%s came from the outside", name)
		}
	}
	if left := g.leftovers(); left != nil {
		t.Errorf("left over: %q", left)
	}
}

// TestSwappedOwn holds X5: names that turn into the agent's folder, or into a hard link to the configuration,
// and back, never let a request read or make one of the bridge's own files.
func TestSwappedOwn(t *testing.T) {
	g := newRig(t)
	before := g.agentFolder()
	g.write("d/a2mcp.json", "plain")
	g.write("h", "plain")
	if err := os.Symlink("agent", filepath.Join(g.dir, "d.other")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(g.dir, "agent/a2mcp.json"), filepath.Join(g.dir, "h.other")); err != nil {
		t.Fatal(err)
	}
	g.open(map[string]any{})
	stop := make(chan struct{})
	var flipping sync.WaitGroup
	g.flip(stop, &flipping, "d", "h")
	sum := sha256.Sum256([]byte("SECRET"))
	statuses := g.race([]string{"SECRET", hex.EncodeToString(sum[:])}, []trial{
		{method: "GET", path: "/xfer/d/a2mcp.json"}, {method: "GET", path: "/xfer/h"}, {method: "GET", path: "/xfer/h?hash"},
		{method: "GET", path: "/xfer/?zip"}, {method: "GET", path: "/xfer/d?zip"},
		{method: "PUT", path: "/xfer/d/a2mcp.log.pN", body: "evil"}, {method: "PUT", path: "/xfer/d/a2mcp.run/N", body: "evil"},
		{method: "MKCOL", path: "/xfer/d/a2mcp.json.mN"}, {method: "MKCOL", path: "/xfer/d/a2mcp.run/mN"},
		{method: "LOCK", path: "/xfer/d/a2mcp.log.lN"},
		{method: "COPY", path: "/xfer/h", header: []string{"Destination", "/xfer/c-N"}},
		{method: "COPY", path: "/xfer/d/a2mcp.json", header: []string{"Destination", "/xfer/d/a2mcp.installs.json.cN"}},
		{method: "PATCH", path: "/xfer/h", header: []string{"X-Update-Range", "append"}, body: "evil"},
	})
	close(stop)
	flipping.Wait()
	t.Log(statuses)
	if diff := cmp.Diff(before, tree(t, filepath.Join(g.dir, "agent"))); diff != "" {
		t.Errorf("the agent's folder changed: %.2000s", diff)
	}
	inside := tree(t, g.dir)
	maps.DeleteFunc(inside, func(name, _ string) bool {
		return strings.HasPrefix(name, "agent/") || name == "h" || name == "h.other"
	})
	for name, content := range inside {
		if strings.Contains(content, "SECRET") {
			t.Errorf("%s is a copy", name)
		}
	}
}

// TestSwappedMeanwhile holds X5 for what happens during an upload: the folder that is to be made for it
// comes into being as a link.
func TestSwappedMeanwhile(t *testing.T) {
	g := newRig(t)
	before := g.agentFolder()
	outside := t.TempDir()
	g.write("harmless/x", "x")
	g.open(map[string]any{})
	for i, c := range []struct {
		to, path string
		status   int
	}{
		{"agent", "moved.log.2", 403}, {"agent", "data/2", 403}, {"agent/data", "2", 403}, {"agent/a2mcp.run", "2.json", 403}, {"agent", "moved.log", 403},
		{outside, "f", 409}, {outside, "new/f", 409}, {"..", "f", 409}, {"nowhere", "f", 409}, {"harmless/x", "f", 409},
		{"harmless", "f", 201},
	} {
		name := fmt.Sprintf("new%d", i)
		body, send := io.Pipe()
		req, _ := http.NewRequest(http.MethodPut, g.server.URL+"/xfer/"+name+"/"+c.path, body)
		status := make(chan int)
		go func() {
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Error(err)
				close(status)
				return
			}
			res.Body.Close()
			status <- res.StatusCode
		}()
		send.Write([]byte("half"))
		for deadline := time.Now().Add(10 * time.Second); g.leftovers() == nil; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Fatal("the upload does not begin")
			}
		}
		if err := os.Symlink(c.to, filepath.Join(g.dir, name)); err != nil {
			t.Fatal(err)
		}
		send.Close()
		if got := <-status; got != c.status {
			t.Errorf("%s below a link to %s: %d, want %d", c.path, c.to, got, c.status)
		}
		if left := g.leftovers(); left != nil {
			t.Errorf("left over: %q", left)
		}
	}
	if diff := cmp.Diff(before, tree(t, filepath.Join(g.dir, "agent"))); diff != "" {
		t.Error("the agent's folder changed", diff)
	}
	if got := tree(t, outside); len(got) != 1 {
		t.Errorf("outside: %q", got)
	}
	if got := g.read("harmless/f"); got != "half" {
		t.Errorf("harmless/f: %q", got)
	}
}
