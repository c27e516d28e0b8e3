package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2mcp/a2mcp/audit"
)

// book collects records in place of the log.
type book struct {
	mu      sync.Mutex
	records []audit.Record
	err     error
}

func (b *book) write(r audit.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records = append(b.records, r)
	return b.err
}

// said is each record as "action path why".
func (b *book) said() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []string
	for _, r := range b.records {
		var a action
		if err := json.Unmarshal(r.Args, &a); err != nil {
			panic(err)
		}
		all = append(all, strings.TrimSpace(a.Action+" "+filepath.Base(a.Path)+" "+a.Why))
	}
	return all
}

func (b *book) count(said string) int {
	n := 0
	for _, s := range b.said() {
		if s == said {
			n++
		}
	}
	return n
}

// bare is a share without a socket, for tests with a clock of their own.
func bare(t *testing.T, change ...func(*Options)) (*Share, *book, string) {
	dir := t.TempDir()
	o := Options{Home: dir, Cwd: dir, Base: func() (string, string) { return "http://127.0.0.1:8080", "" }}
	for _, c := range change {
		c(&o)
	}
	s, b := New(o), &book{}
	s.write = b.write
	return s, b, dir
}

func run(s *Share, name, args string) (string, bool) {
	for _, tool := range s.Tools() {
		if tool.Name == name {
			return tool.Run(context.Background(), "session-1", []byte(args))
		}
	}
	panic(name)
}

func status(s *Share, method, path string) int {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Code
}

// TestShareResult holds X1: every field of the result, in its order, byte for byte.
func TestShareResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		public := ""
		s, b, dir := bare(t, func(o *Options) {
			o.Base = func() (string, string) { return "http://127.0.0.1:8080", public }
		})
		defer s.Close("bridge stopped")
		const auth = `-H 'Authorization: Bearer <TOKEN>' `
		want := func(public, usagePublic string, replaced bool) string {
			return `{"url":"http://127.0.0.1:8080/xfer/","publicUrl":` + public + `,"route":"/xfer/","path":"` + dir + `","port":8080,"replaced":` +
				fmt.Sprint(replaced) + `,"startedAt":"2000-01-01T00:00:00.000Z","expiresAt":"2000-01-01T01:00:00.000Z","usage":{"download":"` +
				`curl -f ` + auth + `-O http://127.0.0.1:8080/xfer/<name>","upload":"` + `curl --fail-with-body ` + auth + `-T <local> http://127.0.0.1:8080/xfer/<name>","append":"` +
				`curl --fail-with-body ` + auth + `-X PATCH -H 'X-Update-Range: append' --data-binary @<piece> http://127.0.0.1:8080/xfer/<name> (a request carries at most ` +
				`the body limit, through the tunnel 100 MB: PUT the first piece, append the others)","public":"` + usagePublic + `"},"installed":{"dufs":null}}`
		}
		text, isError := run(s, "xfer_share", `{"path":"~"}`)
		if w := want("null", noTunnel, false); isError || text != w {
			t.Errorf("without a tunnel:\n%s\nwant\n%s", text, w)
		}
		public = "https://calm-river.trycloudflare.com"
		text, _ = run(s, "xfer_share", `{"path":"~"}`)
		if w := want(`"https://calm-river.trycloudflare.com/xfer/"`, "curl -f "+auth+"-O https://calm-river.trycloudflare.com/xfer/<name>", true); text != w {
			t.Errorf("with a tunnel:\n%s\nwant\n%s", text, w)
		}
		// X3: the public address is read at that moment.
		text, _ = run(s, "xfer_status", "")
		if w := `{"serving":true,"path":"` + dir + `","port":8080,"url":"http://127.0.0.1:8080/xfer/","publicUrl":"https://calm-river.trycloudflare.com/xfer/",` +
			`"route":"/xfer/","startedAt":"2000-01-01T00:00:00.000Z","expiresAt":"2000-01-01T01:00:00.000Z"}`; text != w {
			t.Errorf("status:\n%s\nwant\n%s", text, w)
		}
		public = ""
		if text, _ = run(s, "xfer_status", "{}"); !strings.Contains(text, `"publicUrl":null`) {
			t.Errorf("status without a tunnel: %s", text)
		}
		if text, _ = run(s, "xfer_stop", "{}"); text != `{"stopped":true,"path":"`+dir+`"}` {
			t.Errorf("stop: %s", text)
		}
		if text, isError = run(s, "xfer_stop", "{}"); isError || text != `{"stopped":false,"note":"nothing was shared"}` {
			t.Errorf("second stop: %s", text)
		}
		if text, _ = run(s, "xfer_status", "{}"); text != `{"serving":false}` {
			t.Errorf("status of nothing: %s", text)
		}
		// L7: an action is one record, of the session that asked.
		base := filepath.Base(dir)
		if got, want := b.said(), []string{"share " + base, "close " + base + " replaced", "share " + base, "stop " + base}; !reflect.DeepEqual(got, want) {
			t.Errorf("records %q, want %q", got, want)
		}
		r := b.records[0]
		if w := `{"action":"share","path":"` + dir + `","port":8080,"ttlSeconds":3600,"route":"/xfer/"}`; string(r.Args) != w || r.SID != "session-1" ||
			r.Phase != audit.Done || r.Tool != "xfer" || r.ID == "" || r.ID == b.records[1].ID {
			t.Errorf("record %+v, args %s", r, r.Args)
		}
	})
}

// TestShareArguments holds X1's ways to name a path and X4's failures.
func TestShareArguments(t *testing.T) {
	s, b, dir := bare(t)
	defer s.Close("bridge stopped")
	os.MkdirAll(filepath.Join(dir, "sub", "~"), 0o755)
	os.WriteFile(filepath.Join(dir, "file.txt"), nil, 0o644)
	noPath := "xfer_share needs a 'path' — the file or directory to serve"
	for _, c := range []struct{ args, path, err string }{
		{`{"path":"~"}`, dir, ""},
		{`{"path":"~/sub"}`, filepath.Join(dir, "sub"), ""},
		{`{"path":"sub/../file.txt"}`, filepath.Join(dir, "file.txt"), ""},
		{`{"path":"sub/~"}`, filepath.Join(dir, "sub/~"), ""},
		{`{"path":` + fmt.Sprintf("%q", dir) + `,"ttlSeconds":1}`, dir, ""},
		{`{"path":".","ttlSeconds":86400,"readOnly":true,"browser":false}`, dir, ""},
		{`{"path":".","ttlSeconds":null}`, dir, ""},
		{``, "", noPath}, {`{}`, "", noPath}, {`null`, "", noPath}, {`[]`, "", noPath}, {`{"path":""}`, "", noPath}, {`{"path":7}`, "", noPath},
		{`{"path":"none"}`, "", "cannot serve " + dir + "/none: no such file or directory"},
		{`{"path":"file.txt/x"}`, "", "cannot serve " + dir + "/file.txt/x: not a directory"},
		{`{"path":"a\u0000b"}`, "", "cannot serve " + dir + "/a\x00b: invalid argument"},
		{`{"path":"/dev/null"}`, "", "cannot serve /dev/null: it is neither a file nor a folder"},
		{`{"path":".","ttlSeconds":0}`, "", "xfer_share 'ttlSeconds' is a number of seconds from 1 to 86400"},
		{`{"path":".","ttlSeconds":86401}`, "", "xfer_share 'ttlSeconds' is a number of seconds from 1 to 86400"},
		{`{"path":".","ttlSeconds":"60"}`, "", "xfer_share 'ttlSeconds' is a number of seconds from 1 to 86400"},
		{`{"path":".","readOnly":1}`, "", "xfer_share 'readOnly' is true or false"},
		{`{"path":".","readonly":true}`, "", `xfer_share does not take "readonly" — it takes path, ttlSeconds, readOnly and browser`},
	} {
		text, isError := run(s, "xfer_share", c.args)
		var res struct{ Path string }
		if isError {
			if text != c.err {
				t.Errorf("%s: %q, want %q", c.args, text, c.err)
			}
		} else if json.Unmarshal([]byte(text), &res); c.err != "" || res.Path != c.path {
			t.Errorf("%s: path %q, want %q %q", c.args, res.Path, c.path, c.err)
		}
	}
	if n := b.count("share file.txt"); n != 1 {
		t.Errorf("%d records of sharing file.txt", n)
	}
	// A share that cannot be opened leaves the one that is.
	if st := s.Status(); !st.Serving || st.Path != dir {
		t.Errorf("status after failures: %+v", st)
	}
}

// TestTTL holds X8: a share ends by its time with one close record, and then it is 404.
func TestTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, dir := bare(t)
		run(s, "xfer_share", `{"path":"~","ttlSeconds":60}`)
		time.Sleep(60*time.Second - 1)
		synctest.Wait()
		if st := s.Status(); !st.Serving || status(s, "GET", "/xfer/") != 200 {
			t.Errorf("before the end: %+v", st)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if s.Status().Serving || status(s, "GET", "/xfer/") != 404 {
			t.Error("still serving after the end")
		}
		s.Close("bridge stopped")
		base := filepath.Base(dir)
		if got, want := b.said(), []string{"share " + base, "close " + base + " ttl expired"}; !reflect.DeepEqual(got, want) {
			t.Errorf("records %q, want %q", got, want)
		}
		if r := b.records[1]; r.SID != "" {
			t.Errorf("an end by time has the session %q", r.SID)
		}
	})
}

// TestEndsRace holds X8 where the end by time meets xfer_stop, a new share and the stopping bridge in
// the same instant: one closing record for each share, and the newest share stays.
func TestEndsRace(t *testing.T) {
	for i := range 300 {
		synctest.Test(t, func(t *testing.T) {
			s, b, dir := bare(t)
			os.Mkdir(filepath.Join(dir, "one"), 0o755)
			os.Mkdir(filepath.Join(dir, "two"), 0o755)
			run(s, "xfer_share", `{"path":"one","ttlSeconds":10}`)
			var all sync.WaitGroup
			at := func(f func()) { all.Go(func() { time.Sleep(10 * time.Second); f() }) }
			at(func() { run(s, "xfer_stop", "") })
			at(func() { run(s, "xfer_share", `{"path":"two","ttlSeconds":10}`) })
			if i%2 == 0 {
				at(func() { s.Close("bridge stopped") })
			}
			all.Wait()
			s.Close("bridge stopped")
			s.Close("bridge stopped")
			ends := func(name string) int {
				return b.count("stop "+name) + b.count("close "+name+" replaced") + b.count("close "+name+" ttl expired") + b.count("close "+name+" bridge stopped")
			}
			if ends("one") != 1 || b.count("share two") != ends("two") {
				t.Fatalf("records %q", b.said())
			}
			if s.Status().Serving {
				t.Fatal("serving after Close")
			}
		})
	}
}

// slowChild is a child that takes its time to end.
type slowChild struct {
	port    int
	stopped sync.Once
	ended   chan struct{}
	handler http.HandlerFunc
}

func (c *slowChild) Handler() http.Handler { return c.handler }
func (c *slowChild) Port() int             { return c.port }
func (c *slowChild) Installed() string     { return "/opt/dufs" }
func (c *slowChild) Stop() {
	c.stopped.Do(func() { time.Sleep(3 * time.Second); close(c.ended) })
	<-c.ended
}

// TestReplacements holds X2 and F19: fifty shares in a row over children that end slowly, with ends by
// time in between. The newest is always the one shown, an old one's end never touches it, each share
// has one closing record, and no child is left.
func TestReplacements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var children []*slowChild
		s, b, dir := bare(t, func(o *Options) {
			o.Child = func(_ context.Context, sh ChildShare) (Child, error) {
				c := &slowChild{port: 9000 + len(children), ended: make(chan struct{}), handler: http.NotFound}
				children = append(children, c)
				return c, nil
			}
		})
		for i := range 50 {
			name := fmt.Sprintf("d%d", i)
			os.Mkdir(filepath.Join(dir, name), 0o755)
			text, isError := run(s, "xfer_share", fmt.Sprintf(`{"path":%q,"ttlSeconds":%d}`, name, 1+i%5))
			if isError || !strings.Contains(text, `"installed":{"dufs":"/opt/dufs"}`) || !strings.Contains(text, fmt.Sprintf(`"port":%d`, 9000+i)) {
				t.Fatal(text)
			}
			if i%5 != 0 { // where it lives no longer than the old child took to end
				if st := s.Status(); st.Serving && st.Port != 9000+i {
					t.Fatalf("share %d: status %+v", i, st)
				}
			}
		}
		s.Close("bridge stopped")
		for i, c := range children {
			select {
			case <-c.ended:
			default:
				t.Errorf("child %d was not waited for", i)
			}
			name := fmt.Sprintf("d%d", i)
			if n := b.count("close "+name+" replaced") + b.count("close "+name+" ttl expired") + b.count("close "+name+" bridge stopped"); n != 1 {
				t.Errorf("%s has %d closing records", name, n)
			}
		}
	})
}

// TestCloseWhileStarting holds P5 and P6 for a share that is being opened: its start is ended and it never
// begins.
func TestCloseWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b, _ := bare(t, func(o *Options) {
			o.Child = func(ctx context.Context, _ ChildShare) (Child, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		result := make(chan string)
		go func() {
			text, isError := run(s, "xfer_share", `{"path":"~"}`)
			result <- fmt.Sprint(isError, " ", text)
		}()
		synctest.Wait()
		s.Close("bridge stopped")
		if r := <-result; !strings.HasPrefix(r, "true ") {
			t.Errorf("shared after Close: %s", r)
		}
		if said := b.said(); said != nil || s.Status().Serving {
			t.Errorf("records %q, status %+v", said, s.Status())
		}
		// The bridge may bind again and share again.
		s.o.Child = nil
		if text, isError := run(s, "xfer_share", `{"path":"~"}`); isError {
			t.Error(text)
		}
		s.Close("bridge stopped")
	})
}

// TestChild holds X4, X5 and X10 where a child serves.
func TestChild(t *testing.T) {
	var asked ChildShare
	var child *slowChild
	var failure error
	g := newRig(t, func(o *Options) {
		o.Child = func(_ context.Context, sh ChildShare) (Child, error) {
			asked = sh
			if failure != nil || child == nil {
				return nil, failure
			}
			return child, nil
		}
	})
	ended := make(chan struct{})
	close(ended)
	child = &slowChild{port: 9000, ended: ended, handler: func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "child: %s %s", r.Method, r.URL.RequestURI())
	}}
	child.stopped.Do(func() {})
	g.write("sub/a2mcp.json", "secret")
	g.write("one/f.txt", "content")
	link := filepath.Join(g.dir, "link")
	if err := os.Symlink("one", link); err != nil {
		t.Fatal(err)
	}

	g.open(map[string]any{"path": link, "readOnly": true})
	real, _ := filepath.EvalSymlinks(link)
	if want := (ChildShare{Path: real, Dir: true, ReadOnly: true, SID: "session-1"}); asked != want {
		t.Errorf("asked for %+v, want %+v", asked, want)
	}
	if a := g.do("GET", "/xfer/a%2fb?json", ""); a.body != "child: GET /xfer/a%2fb?json" || !strings.Contains(a.header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("through the child: %+v", a)
	}
	for _, m := range []string{"PUT", "PATCH", "MKCOL", "COPY", "DELETE", "LOCK", "CHECKAUTH"} {
		if a := g.do(m, "/xfer/x", "x"); a.status != 403 {
			t.Errorf("%s of a read-only share: %d %s", m, a.status, a.body)
		}
	}
	g.open(map[string]any{"path": "one"})
	g.set(func() { g.max = 3 })
	if a := g.do("PUT", "/xfer/x", "four"); a.status != 413 || a.body != tooLarge {
		t.Errorf("over the limit: %+v", a)
	}
	g.set(func() { g.max = 1 << 20 })

	g.set(func() { g.own = []string{filepath.Join(g.dir, "sub", "a2mcp.json")} })
	if text, isError := g.tool("xfer_share", map[string]any{"path": g.dir}); !isError || !strings.Contains(text, "the bridge's own files are inside it") {
		t.Errorf("a folder with the bridge's files, by a child: %s", text)
	}
	if text, isError := g.tool("xfer_share", map[string]any{"path": "one", "browser": true}); !isError || !strings.Contains(text, "browser link") {
		t.Errorf("a browser link, by a child: %s", text)
	}
	failure = errors.New("dufs: Address already in use (os error 98)")
	if text, isError := g.tool("xfer_share", map[string]any{"path": "one"}); !isError || text != failure.Error() {
		t.Errorf("the child's own words: %q", text)
	}
	failure, child = nil, nil
	g.open(map[string]any{"path": "one"})
	if a := g.do("GET", "/xfer/f.txt", ""); a.body != "content" {
		t.Errorf("no child is the built-in server: %+v", a)
	}
}

// TestRequiredRecord holds L5: where records are required, no share begins without one; otherwise it does.
func TestRequiredRecord(t *testing.T) {
	required := true
	s, b, _ := bare(t, func(o *Options) { o.Required = func() bool { return required } })
	defer s.Close("bridge stopped")
	b.err = errors.New("disk full")
	if text, isError := run(s, "xfer_share", `{"path":"~"}`); !isError || !strings.Contains(text, "audit log not writable") || s.Status().Serving {
		t.Errorf("required: %v %s", isError, text)
	}
	required = false
	if text, isError := run(s, "xfer_share", `{"path":"~"}`); isError {
		t.Errorf("not required: %s", text)
	}
}

// TestNoShare holds X7: without a share every request is 404.
func TestNoShare(t *testing.T) {
	g := newRig(t)
	for _, m := range []string{"GET", "HEAD", "PUT", "PATCH", "DELETE", "MOVE", "COPY", "MKCOL", "PROPFIND", "OPTIONS", "LOCK", "POST", "BREW"} {
		for _, p := range []string{"/xfer", "/xfer/", "/xfer/x", "/xfer/../x"} {
			if a := g.do(m, p, ""); a.status != 404 {
				t.Errorf("%s %s: %d", m, p, a.status)
			}
		}
	}
}

// TestAccess holds `xfer.access`: read-only refuses every write at once, off hides the share and refuses a new one.
func TestAccess(t *testing.T) {
	g := newRig(t)
	g.write("f.txt", "content")
	g.open(map[string]any{})
	g.do("PUT", "/xfer/mine", "x")
	writes := func(when string, status int) {
		t.Helper()
		for _, m := range []string{"PUT", "PATCH", "MKCOL", "COPY", "LOCK", "UNLOCK", "PROPPATCH", "DELETE", "MOVE"} {
			if a := g.do(m, "/xfer/mine", "x", "X-Update-Range", "append", "Destination", "/xfer/copy"); a.status != status {
				t.Errorf("%s: %s is %d, want %d", when, m, a.status, status)
			}
		}
		if g.read("mine") != "x" || g.read("copy") != "<none>" {
			t.Errorf("%s: something was written", when)
		}
	}
	g.set(func() { g.access = ReadOnly })
	writes("access read-only", 403)
	if a := g.do("GET", "/xfer/f.txt", ""); a.body != "content" {
		t.Errorf("reading: %+v", a)
	}
	if a := g.do("GET", "/xfer/none/", ""); a.status != 404 {
		t.Errorf("a folder that no upload can make: %d", a.status)
	}
	if a := g.do("GET", "/xfer/?json", ""); !strings.Contains(a.body, `"allow_upload": false`) {
		t.Errorf("listing: %s", a.body)
	}
	if a := g.do("OPTIONS", "/xfer/", ""); strings.Contains(a.header.Get("Allow"), "PUT") {
		t.Errorf("allow: %q", a.header)
	}
	g.set(func() { g.access = Off })
	writes("access off", 404)
	if text, isError := g.tool("xfer_share", map[string]any{"path": g.dir}); !isError || !strings.Contains(text, "switched off") {
		t.Errorf("sharing: %s", text)
	}
	g.set(func() { g.access = ReadWrite })
	res := g.open(map[string]any{"readOnly": true})
	if up := res["usage"].(map[string]any)["upload"]; up != "this share takes no uploads" {
		t.Errorf("usage %q", up)
	}
	writes("readOnly", 403)
}

// TestSingleFile holds X1 and X5 for a shared file: nothing beside it is there.
func TestSingleFile(t *testing.T) {
	g := newRig(t)
	g.write("a b.txt", "content")
	g.write("other.txt", "other")
	res := g.open(map[string]any{"path": "a b.txt"})
	if d := res["usage"].(map[string]any)["download"].(string); !strings.HasSuffix(d, "/xfer/a%20b.txt") {
		t.Errorf("usage %q", d)
	}
	for _, p := range []string{"/xfer", "/xfer/", "/xfer/a%20b.txt"} {
		if a := g.do("GET", p, ""); a.status != 200 || a.body != "content" {
			t.Errorf("%s: %+v", p, a)
		}
		if a := g.do("PROPFIND", p, ""); a.status != 207 || !strings.Contains(a.body, "<D:href>/xfer/a%20b.txt</D:href>") {
			t.Errorf("PROPFIND %s: %+v", p, a)
		}
	}
	for _, p := range []string{"/xfer/other.txt", "/xfer/a%20b.txt/other.txt", "/xfer/new/", "/xfer/?zip/other.txt/"} {
		if a := g.do("GET", p, ""); a.body == "other" || a.status == 200 && a.body != "content" {
			t.Errorf("%s: %+v", p, a)
		}
	}
	for _, m := range []string{"PUT", "PATCH", "MKCOL", "COPY", "LOCK", "DELETE", "MOVE"} {
		if a := g.do(m, "/xfer/a%20b.txt", "x", "Destination", "/xfer/copy"); a.status != 403 {
			t.Errorf("%s: %d", m, a.status)
		}
		if a := g.do(m, "/xfer/new", "x", "Destination", "/xfer/copy"); a.status != 404 {
			t.Errorf("%s of another name: %d", m, a.status)
		}
	}
	// A link in the file's place is not what was shared.
	os.Remove(filepath.Join(g.dir, "a b.txt"))
	if err := os.Symlink("other.txt", filepath.Join(g.dir, "a b.txt")); err != nil {
		t.Fatal(err)
	}
	if a := g.do("GET", "/xfer/", ""); a.status != 404 {
		t.Errorf("a link in its place: %+v", a)
	}
}
