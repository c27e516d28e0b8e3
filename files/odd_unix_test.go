//go:build unix

package files

import (
	"encoding/json"
	"encoding/xml"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// odd puts everything into the shared folder that is neither file nor folder, and names that few expect.
func (g *rig) odd() (names []string) {
	g.t.Helper()
	names = []string{"new\nline", "car\rriage", "tab\t", "esc\x1b[31m", "bad\xff\xfeutf8", "\xc3", `back\slash`, `"quotes"`, "<b>&amp;", "%2e%2e",
		"?q=1", "#x", " lead", "trail ", "...", "~", "-rf", "\u202etxt.exe", "\u2028", "a;b", "'", "CON", "x:y", "*", "é", "e\u0301",
		strings.Repeat("n", 255), strings.Repeat("€", 85)}
	if runtime.GOOS == "darwin" { // takes no bytes that are not UTF-8, and holds both é for one
		names = names[:4]
	}
	for _, name := range names {
		g.write(name, "content")
	}
	if err := syscall.Mkfifo(filepath.Join(g.dir, "pipe"), 0o666); err != nil {
		g.t.Fatal(err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(g.dir, "socket")})
	if err != nil {
		g.t.Log("no socket: ", err) // the folder's own name may be too long for one
	} else {
		g.t.Cleanup(func() { l.Close() })
	}
	for name, to := range map[string]string{"dangling": "none", "loop": "loop", "to-pipe": "pipe", "to-null": "/dev/null", "to-dir": ".", "to-zero": "/dev/zero"} {
		if err := os.Symlink(to, filepath.Join(g.dir, name)); err != nil {
			g.t.Fatal(err)
		}
	}
	return names
}

// within is try with a bound: nothing that lies in a folder makes an answer wait.
func (g *rig) within(method, path, body string, header ...string) answer {
	g.t.Helper()
	timer := time.AfterFunc(20*time.Second, func() { panic(method + " " + path + " hangs") })
	defer timer.Stop()
	return g.try(method, path, body, header...)
}

// TestOddNames holds X5 for pipes, sockets, links that lead nowhere and names that few expect: every
// listing answers, shows the files by names that lead to them, and shows nothing else.
func TestOddNames(t *testing.T) {
	g := newRig(t)
	names := g.odd()
	g.open(map[string]any{})

	var l listing
	a := g.within("GET", "/xfer/?json", "")
	if err := json.Unmarshal([]byte(a.body), &l); err != nil || len(l.Paths) != len(names)+1 { // and to-dir
		t.Errorf("%d of %d, %v: %s", len(l.Paths), len(names), err, a.body)
	}
	if a := g.within("GET", "/xfer/?simple", ""); strings.Count(a.body, "\n") != len(names)+1 || strings.Contains(a.body, "\r") {
		t.Errorf("simple: %q", a.body)
	}
	if a := g.within("GET", "/xfer/", "", "User-Agent", "curl/8"); strings.Count(a.body, "\n") != len(names)+1 || strings.ContainsAny(a.body, "\r\x1b\u202e") {
		t.Errorf("plain: %q", a.body)
	}
	if a := g.within("GET", "/xfer/", "", "User-Agent", "Mozilla/5.0"); a.status != 200 || strings.Contains(a.body, "<b>&amp;") {
		t.Errorf("page: %d", a.status)
	}
	if a := g.within("GET", "/xfer/?zip", ""); strings.Count(a.body, "content") < len(names) || strings.Contains(a.body, "not readable") {
		t.Errorf("zip: %d files in %d bytes", strings.Count(a.body, "content"), len(a.body))
	}
	if a := g.within("GET", "/xfer/?q=e&json", ""); a.status != 200 || strings.Contains(a.body, `"pipe"`) {
		t.Errorf("search: %s", a.body)
	}
	var dav struct {
		Hrefs []string `xml:"response>href"`
	}
	a = g.within("PROPFIND", "/xfer/", "", "Depth", "1")
	if err := xml.Unmarshal([]byte(a.body), &dav); err != nil || len(dav.Hrefs) != len(names)+2 { // and the folder itself
		t.Errorf("PROPFIND: %d of %d, %v", len(dav.Hrefs), len(names), err)
	}
	for _, href := range dav.Hrefs {
		if strings.HasSuffix(href, "/") {
			continue
		}
		if a := g.within("GET", href, ""); a.status != 200 || a.body != "content" {
			t.Errorf("%s: %d %q", href, a.status, a.body)
		}
	}
	for _, name := range names {
		h := "/xfer/" + escapePath(name)
		for _, path := range []string{h + "?json", h + "?hash"} {
			if a := g.within("GET", path, ""); a.status != 200 {
				t.Errorf("%s: %d", path, a.status)
			}
		}
		if a := g.within("COPY", h, "", "Destination", "/xfer/copies/"+escapePath(name)); a.status != 204 || g.read("copies/"+name) != "content" {
			t.Errorf("COPY %s: %d", h, a.status)
		}
		if a := g.within("GET", h, ""); strings.ContainsAny(a.header.Get("Content-Disposition"), "\r\n\x1b") {
			t.Errorf("%q", a.header)
		}
	}
}

// TestOddKinds holds X5: what is neither file nor folder is not there, and never makes a request wait.
func TestOddKinds(t *testing.T) {
	g := newRig(t)
	g.odd()
	g.open(map[string]any{})
	for _, name := range []string{"pipe", "socket", "dangling", "loop", "to-pipe", "to-null", "to-zero"} {
		for _, r := range []trial{
			{method: "GET"}, {method: "HEAD"}, {method: "GET", path: "/"}, {method: "GET", path: "?hash"}, {method: "GET", path: "?json"}, {method: "GET", path: "?zip"},
			{method: "PROPFIND"}, {method: "PUT", body: "x"}, {method: "PUT", path: "/below", body: "x"}, {method: "MKCOL"}, {method: "LOCK"}, {method: "UNLOCK"},
			{method: "PATCH", header: []string{"X-Update-Range", "append"}, body: "x"}, {method: "COPY", header: []string{"Destination", "/xfer/copy"}},
		} {
			if name == "socket" && r.path != "/below" {
				if _, err := os.Lstat(filepath.Join(g.dir, name)); err != nil {
					continue
				}
			}
			a := g.within(r.method, "/xfer/"+name+r.path, r.body, r.header...)
			if a.status < 400 || a.status >= 500 {
				t.Errorf("%s %s: %d %.100q", r.method, name+r.path, a.status, a.body)
			}
		}
	}
	// Names longer than any file's, and paths longer than any.
	for _, name := range []string{strings.Repeat("n", 256), strings.Repeat("n", 60_000), strings.Repeat("d/", 5000) + "f", strings.Repeat("%ff", 300)} {
		for _, method := range []string{"GET", "PUT", "MKCOL", "LOCK", "PROPFIND"} {
			if a := g.within(method, "/xfer/"+name, ""); a.status < 400 || a.status >= 500 {
				t.Errorf("%s of %d bytes: %d %.100q", method, len(name), a.status, a.body)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(g.dir, "d")); err == nil {
		t.Error("folders of a refused path stay")
	}
	if left := g.leftovers(); left != nil {
		t.Errorf("left over: %q", left)
	}
}

// TestSwappedPipe holds X5 where a pipe takes a file's place between the look and the opening.
func TestSwappedPipe(t *testing.T) {
	g := newRig(t)
	pipe, file, name := filepath.Join(g.dir, "a-pipe"), filepath.Join(g.dir, "a-file"), filepath.Join(g.dir, "f")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	g.write("a-file", "x")
	g.open(map[string]any{})
	stop := make(chan struct{})
	var flipping sync.WaitGroup
	flipping.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			from := []string{pipe, file}[i%2]
			os.Remove(name + ".tmp")
			if os.Link(from, name+".tmp") != nil || os.Rename(name+".tmp", name) != nil {
				t.Error("cannot swap")
				return
			}
		}
	})
	for range 10 * rounds() {
		for _, path := range []string{"/xfer/f", "/xfer/f?hash", "/xfer/?zip"} {
			if a := g.within("GET", path, ""); a.status != 200 && a.status != 404 {
				t.Fatalf("%s: %d", path, a.status)
			}
		}
		if a := g.within("PATCH", "/xfer/f", "x", "X-Update-Range", "append"); a.status != 403 && a.status != 404 {
			t.Fatalf("PATCH: %d", a.status)
		}
	}
	close(stop)
	flipping.Wait()
}

// TestUnreadable holds X5: what the system does not let the bridge read is 403, is no reason for a listing
// to fail, and is named in an archive's comment. Root, who may read all, is somebody else for the time.
func TestUnreadable(t *testing.T) {
	g := newRig(t)
	g.write("closed/f", "secret")
	g.write("open/f", "content")
	g.write("shut", "secret")
	g.open(map[string]any{})
	for _, name := range []string{"closed", "shut"} {
		p := filepath.Join(g.dir, name)
		if err := os.Chmod(p, 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(p, 0o755) })
	}
	if os.Geteuid() == 0 {
		if err := syscall.Setreuid(-1, 65534); err != nil {
			t.Skip("root cannot be somebody else: ", err)
		}
		t.Cleanup(func() {
			if err := syscall.Setreuid(-1, 0); err != nil {
				t.Error(err)
			}
		})
	}
	for _, path := range []string{"closed", "closed/", "closed/f", "closed?json", "closed?q=f", "closed?zip", "shut", "shut?hash"} {
		if a := g.within("GET", "/xfer/"+path, ""); a.status != http.StatusForbidden {
			t.Errorf("GET %s: %d %q", path, a.status, a.body)
		}
	}
	for _, r := range []trial{
		{method: "PUT", path: "closed/new", body: "x"}, {method: "PUT", path: "closed/a/b", body: "x"}, {method: "MKCOL", path: "closed/new"},
		{method: "LOCK", path: "closed/new"}, {method: "PROPFIND", path: "closed"}, {method: "COPY", path: "shut", header: []string{"Destination", "/xfer/c"}},
	} {
		if a := g.within(r.method, "/xfer/"+r.path, r.body, r.header...); a.status != http.StatusForbidden {
			t.Errorf("%s %s: %d %q", r.method, r.path, a.status, a.body)
		}
	}
	for _, path := range []string{"?json", "?simple", "", "?q=f&json"} {
		if a := g.within("GET", "/xfer/"+path, ""); a.status != 200 || !strings.Contains(a.body, "open") {
			t.Errorf("GET /%s: %d %q", path, a.status, a.body)
		}
	}
	a := g.within("GET", "/xfer/?zip", "")
	if !strings.Contains(a.body, "content") || !strings.Contains(a.body, "not readable: closed\n") || !strings.Contains(a.body, "not readable: shut\n") {
		t.Errorf("zip: %q", a.body)
	}
	if a := g.within("PROPFIND", "/xfer/", "", "Depth", "1"); a.status != 207 || !strings.Contains(a.body, "/xfer/closed/") {
		t.Errorf("PROPFIND: %d", a.status)
	}
}
