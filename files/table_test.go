package files

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// trial is one request and what must come of it. The trials of a table run in order on one folder. The same
// table runs against a real dufs 0.46.0 when DUFS names its binary; dufs is the status it answers where
// that differs, and why says what the difference is for.
type trial struct {
	method, path string
	header       []string // pairs
	body         string
	status       int
	holds        []string // parts of the answer, headers included, that both servers must have
	lacks        []string
	dufs         int
	why          string
}

// contract is X5 and X7 as a caller sees them.
var contract = []trial{
	// Paths (F01).
	{method: "GET", path: "/xfer", status: 200, holds: []string{"text/html", "nosniff"}},
	{method: "GET", path: "/xfer/", status: 200},
	{method: "GET", path: "/xfer/a%20b.txt", status: 200, holds: []string{"spaced"}},
	{method: "GET", path: "/xfer/%E4%BD%A0", status: 200, holds: []string{"chinese"}},
	{method: "GET", path: "/xfer/100%25.txt", status: 200, holds: []string{"percent"}},
	{method: "GET", path: "/xfer/a%23b", status: 200, holds: []string{"hash sign"}},
	{method: "GET", path: "/xfer//sub///deep/./f.txt", status: 200, holds: []string{"deep"}},
	{method: "GET", path: "/xfer/ten.txt/", status: 200, holds: []string{"0123456789"}},
	{method: "GET", path: "/xfer/../etc/passwd", status: 400, holds: []string{"Invalid Path"}},
	{method: "GET", path: "/xfer/%2e%2e/etc/passwd", status: 400},
	{method: "GET", path: "/xfer/sub/..%2f..%2f..%2fetc/passwd", status: 400},
	{method: "GET", path: "/xfer/a%00b", status: 400, dufs: 404, why: "a NUL is no path"},
	{method: "GET", path: "/xfer/none", status: 404, holds: []string{"Not Found"}},
	{method: "GET", path: "/xfer/none/", status: 200},
	{method: "GET", path: "/xfer/none/?json", status: 200, holds: []string{`"dir_exists": false`}},

	// Listings.
	{method: "GET", path: "/xfer/?json", status: 200, holds: []string{"application/json", `"href": "/"`, `"kind": "Index"`,
		`"uri_prefix": "/xfer/"`, `"allow_upload": true`, `"allow_delete": false`, `"allow_search": true`, `"allow_archive": true`,
		`"dir_exists": true`, `"path_type": "Dir"`, `"name": "sub"`, `"size": 10`}},
	{method: "GET", path: "/xfer/sub?json", status: 200, holds: []string{`"href": "/sub"`, `"name": "deep"`, `"size": 2`}},
	{method: "GET", path: "/xfer/sub/deep/f.txt?json", status: 200, holds: []string{`"path_type": "File"`, `"name": "sub/deep/f.txt"`}},
	{method: "GET", path: "/xfer/sub/deep?simple", status: 200, holds: []string{"f.txt\ng&amp;h.txt\n", "text/html"}},
	{method: "GET", path: "/xfer/order?simple", status: 200, holds: []string{"zdir/\na1\nA2\na10\n"}},
	{method: "GET", path: "/xfer/order?simple&sort=name&order=desc", status: 200, holds: []string{"a10\nA2\na1\nzdir/\n"}},
	{method: "GET", path: "/xfer/order?simple&sort=size", status: 200, holds: []string{"zdir/\na10\na1\nA2\n"}},
	{method: "GET", path: "/xfer/order?simple&sort=mtime", status: 200, holds: []string{"zdir/\nA2\na10\na1\n"}},
	{method: "GET", path: "/xfer/?q=F.TX&json", status: 200, holds: []string{`"name": "sub/deep/f.txt"`}, lacks: []string{"ten.txt"}},
	{method: "GET", path: "/xfer/?q=&simple", status: 200, holds: []string{"ten.txt\n"}},
	{method: "HEAD", path: "/xfer/", status: 200},
	{method: "GET", path: "/xfer/sub?zip", status: 200, holds: []string{"application/zip", `filename="sub.zip"`, "PK\x03\x04", "deep/f.txt"}},

	// Files.
	{method: "GET", path: "/xfer/ten.txt", status: 200, holds: []string{"0123456789", "Content-Type: text/plain",
		`Content-Disposition: inline; filename="ten.txt"`, "Accept-Ranges: bytes", "Cache-Control: no-cache",
		`Etag: "1700000000000-10"`, "Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT"}},
	{method: "HEAD", path: "/xfer/ten.txt", status: 200, holds: []string{"Content-Length: 10", `Etag: "1700000000000-10"`}},
	{method: "GET", path: "/xfer/ten.txt?hash", status: 200, holds: []string{"84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"}},
	{method: "GET", path: "/xfer/%E4%BD%A0", status: 200, holds: []string{"filename*=UTF-8''%E4%BD%A0"}},

	// Conditions.
	{method: "GET", path: "/xfer/ten.txt", header: []string{"If-None-Match", `"1700000000000-10"`}, status: 304},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"If-None-Match", `"other"`}, status: 200},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"If-Match", `"other"`}, status: 412},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"If-Modified-Since", "Tue, 14 Nov 2023 22:13:20 GMT"}, status: 304},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"If-Unmodified-Since", "Tue, 14 Nov 2023 22:13:19 GMT"}, status: 412},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"If-Range", `"1700000000000-10"`, "Range", "bytes=2-3"}, status: 206, holds: []string{"23"}},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"If-Range", `"other"`, "Range", "bytes=2-3"}, status: 200},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"If-None-Match", `"1700000000000-10"`, "Range", "bytes=99-"}, status: 304},

	// Ranges (F12).
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=2-4"}, status: 206, holds: []string{"Content-Range: bytes 2-4/10", "\n234"}},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=7-"}, status: 206, holds: []string{"Content-Range: bytes 7-9/10"}},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=-3"}, status: 206, holds: []string{"Content-Range: bytes 7-9/10"}},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=0-1,8-9"}, status: 206, holds: []string{"multipart/byteranges"}},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=5-10"}, status: 416, holds: []string{"Content-Range: bytes */10"}},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=10-"}, status: 416, holds: []string{"Content-Range: bytes */10"}},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=-11"}, status: 416},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=-0"}, status: 416, dufs: 206, why: "an empty range is none"},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=5-2"}, status: 416, dufs: 206, why: "a range does not run backwards"},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=0-18446744073709551615"}, status: 416},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=0-99999999999999999999"}, status: 416},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=-99999"}, status: 416},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "lines=0-1"}, status: 416},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=0-5,3-9"}, status: 416, dufs: 206, why: "an answer is never longer than the file"},
	{method: "GET", path: "/xfer/ten.txt", header: []string{"Range", "bytes=" + strings.Repeat("0-,", 999) + "0-"}, status: 416, dufs: 206, why: "a thousand times the file"},
	{method: "GET", path: "/xfer/empty.txt", header: []string{"Range", "bytes=0-"}, status: 200, dufs: 416, why: "some clients send a range with every request"},
	{method: "GET", path: "/xfer/empty.txt", header: []string{"Range", "bytes=-0"}, status: 200, dufs: 416, why: "an empty file has no ranges"},

	// Uploads (X7, F05).
	{method: "PUT", path: "/xfer/up/new.txt", body: "content", status: 201},
	{method: "GET", path: "/xfer/up/new.txt", status: 200, holds: []string{"content"}},
	{method: "PUT", path: "/xfer/up/new.txt", body: "other", status: 403},
	{method: "PUT", path: "/xfer/ten.txt", body: "other", status: 403},
	{method: "GET", path: "/xfer/ten.txt", status: 200, holds: []string{"0123456789"}},
	{method: "PUT", path: "/xfer/sub", body: "x", status: 403},
	{method: "PUT", path: "/xfer/", body: "x", status: 403},
	{method: "PUT", path: "/xfer/up/f05", status: 201},
	{method: "PUT", path: "/xfer/up/f05", body: "0123456789", status: 201},
	{method: "PUT", path: "/xfer/up/f05", body: "third", status: 403},
	{method: "GET", path: "/xfer/up/f05", status: 200, holds: []string{"0123456789"}},
	{method: "PUT", path: "/xfer/ten.txt/below", body: "x", status: 409, dufs: 500, why: "a file is no folder"},
	{method: "PUT", path: "/xfer/up/part", header: []string{"Content-Range", "bytes 0-3/10"}, body: "part", status: 400, dufs: 201, why: "a part is not the whole"},

	// Appends.
	{method: "PATCH", path: "/xfer/up/new.txt", header: []string{"X-Update-Range", "append"}, body: "-more", status: 204},
	{method: "GET", path: "/xfer/up/new.txt", status: 200, holds: []string{"content-more"}},
	{method: "PATCH", path: "/xfer/up/new.txt", header: []string{"X-Update-Range", "bytes=12-"}, body: "!", status: 204, dufs: 400, why: "going on from a length is an append"},
	{method: "PATCH", path: "/xfer/up/new.txt", header: []string{"X-Update-Range", "bytes=0-"}, body: "X", status: 403, dufs: 204, why: "nothing is overwritten"},
	{method: "PATCH", path: "/xfer/up/new.txt", header: []string{"X-Update-Range", "bytes=99-"}, body: "X", status: 400},
	{method: "PATCH", path: "/xfer/up/new.txt", header: []string{"X-Update-Range", "nonsense"}, body: "X", status: 400},
	{method: "PATCH", path: "/xfer/up/new.txt", body: "X", status: 405},
	{method: "PATCH", path: "/xfer/up/none", header: []string{"X-Update-Range", "append"}, body: "X", status: 404},
	{method: "PATCH", path: "/xfer/ten.txt", header: []string{"X-Update-Range", "append"}, body: "X", status: 403, dufs: 204, why: "only what this share made can be appended to"},

	// Folders and copies.
	{method: "MKCOL", path: "/xfer/mk/a/b", status: 201},
	{method: "MKCOL", path: "/xfer/mk/a", status: 405, holds: []string{"Already exists"}},
	{method: "MKCOL", path: "/xfer/ten.txt", status: 405},
	{method: "MKCOL", path: "/xfer/mk/body", body: "<x/>", status: 415, dufs: 201, why: "RFC 4918 9.3"},
	{method: "COPY", path: "/xfer/ten.txt", header: []string{"Destination", "http://elsewhere.example/xfer/cp/ten.txt"}, status: 204},
	{method: "GET", path: "/xfer/cp/ten.txt", status: 200, holds: []string{"0123456789"}},
	{method: "COPY", path: "/xfer/empty.txt", header: []string{"Destination", "/xfer/cp/ten.txt", "Overwrite", "T"}, status: 403, dufs: 204, why: "nothing is overwritten"},
	{method: "COPY", path: "/xfer/ten.txt", header: []string{"Destination", "/xfer/empty.txt"}, status: 403, dufs: 204, why: "nothing is overwritten"},
	{method: "COPY", path: "/xfer/sub", header: []string{"Destination", "/xfer/cp/sub"}, status: 403},
	{method: "COPY", path: "/xfer/ten.txt", header: []string{"Destination", "/elsewhere"}, status: 400, holds: []string{"Invalid Destination"}},
	{method: "COPY", path: "/xfer/ten.txt", header: []string{"Destination", "/xfer/../x"}, status: 400},
	{method: "COPY", path: "/xfer/ten.txt", status: 400},
	{method: "COPY", path: "/xfer/none", header: []string{"Destination", "/xfer/cp/none"}, status: 404},
	{method: "DELETE", path: "/xfer/ten.txt", status: 403},
	{method: "DELETE", path: "/xfer/none", status: 403},
	{method: "MOVE", path: "/xfer/ten.txt", header: []string{"Destination", "/xfer/moved"}, status: 403},

	// WebDAV (F06, F22).
	{method: "PROPFIND", path: "/xfer/", header: []string{"Depth", "1"}, status: 207, holds: []string{"application/xml; charset=utf-8",
		"<D:href>/xfer/</D:href>", "<D:href>/xfer/sub/</D:href>", "<D:collection/>", "<D:href>/xfer/100%25.txt</D:href>",
		"<D:getcontentlength>10</D:getcontentlength>", "<D:getlastmodified>Tue, 14 Nov 2023 22:13:20 GMT</D:getlastmodified>",
		"<D:displayname>ten.txt</D:displayname>", "HTTP/1.1 200 OK"}},
	{method: "PROPFIND", path: "/xfer/sub", status: 207, holds: []string{"/xfer/sub/deep/"}},
	{method: "PROPFIND", path: "/xfer/", header: []string{"Depth", "0"}, status: 207, holds: []string{"/xfer/"}, lacks: []string{"ten.txt"}},
	{method: "PROPFIND", path: "/xfer/", header: []string{"Depth", "infinity"}, status: 400},
	{method: "PROPFIND", path: "/xfer/", header: []string{"Depth", "2"}, status: 400},
	{method: "PROPFIND", path: "/xfer/none", status: 404},
	{method: "PROPPATCH", path: "/xfer/ten.txt", status: 207, holds: []string{"403 Forbidden"}},
	{method: "PROPPATCH", path: "/xfer/none", status: 404},
	{method: "LOCK", path: "/xfer/ten.txt", status: 200, holds: []string{"Lock-Token: <opaquelocktoken:", "<D:locktoken>"}},
	{method: "LOCK", path: "/xfer/up/locked", status: 201, holds: []string{"Lock-Token: <opaquelocktoken:"}, dufs: 404, why: "davfs2 makes its files by LOCK"},
	{method: "PUT", path: "/xfer/up/locked", body: "filled", status: 201},
	{method: "UNLOCK", path: "/xfer/up/locked", status: 204, dufs: 200, why: "RFC 4918 9.11"},
	{method: "LOCK", path: "/xfer/nowhere/locked", status: 409, dufs: 404, why: "RFC 4918 9.10.4"},
	{method: "UNLOCK", path: "/xfer/none", status: 404},
	{method: "OPTIONS", path: "/xfer/", status: 200, holds: []string{"Dav: 1, 2, 3", "GET", "PUT", "PROPFIND"}},
	{method: "POST", path: "/xfer/", body: "x", status: 405},
	{method: "BREW", path: "/xfer/", status: 405},
}

// prepare makes the folder that the table expects.
func prepare(t *testing.T, dir string) {
	mtime := time.Unix(1700000000, 0)
	for i, f := range []struct{ name, content string }{
		{"a b.txt", "spaced"}, {"你", "chinese"}, {"100%.txt", "percent"}, {"a#b", "hash sign"}, {"ten.txt", "0123456789"},
		{"empty.txt", ""}, {"sub/deep/f.txt", "deep"}, {"sub/deep/g&h.txt", ""},
		{"order/A2", "333"}, {"order/a10", "1"}, {"order/a1", "22"}, {"order/zdir/x", ""},
	} {
		p := filepath.Join(dir, f.name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(f.content), 0o644); err != nil {
			t.Fatal(err)
		}
		when := mtime
		if strings.HasPrefix(f.name, "order") {
			when = mtime.Add(time.Duration(i) * time.Second)
		}
		if err := os.Chtimes(p, when, when); err != nil {
			t.Fatal(err)
		}
	}
}

// TestContract holds X5 and X7, F01, F05, F06, F12 and F22 of the built-in server.
func TestContract(t *testing.T) {
	g := newRig(t)
	prepare(t, g.dir)
	g.open(map[string]any{})
	for _, r := range contract {
		r.check(t, g.server.URL, r.status)
	}
	if left := g.leftovers(); left != nil {
		t.Errorf("left over: %q", left)
	}
}

// TestContractOfDufs runs the same requests against a real dufs, to see that the table is true of it.
func TestContractOfDufs(t *testing.T) {
	bin := os.Getenv("DUFS")
	if bin == "" {
		t.Skip("DUFS does not name a dufs 0.46.0 to compare with")
	}
	dir := t.TempDir()
	prepare(t, dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(bin, "--path-prefix", "/xfer", "--allow-upload", "--allow-search", "--allow-archive", "--allow-hash",
		"-b", "127.0.0.1", "-p", fmt.Sprint(port), dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	base := fmt.Sprintf("http://127.0.0.1:%d", port)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if res, err := http.Get(base + "/xfer/__dufs__/health"); err == nil {
			res.Body.Close()
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	for _, r := range contract {
		want := r.status
		if r.dufs != 0 {
			want = r.dufs
		}
		r.check(t, base, want)
	}
}

func (r trial) check(t *testing.T, base string, status int) {
	t.Helper()
	name := r.method + " " + r.path
	if len(r.header) > 0 {
		name += fmt.Sprintf(" %.80q", r.header)
	}
	a := do(t, base, r.method, r.path, r.body, append([]string{"User-Agent", "table"}, r.header...)...)
	if a.status != status {
		t.Errorf("%s: status %d, want %d: %.200q", name, a.status, status, a.body)
		return
	}
	if status != r.status {
		return
	}
	var h strings.Builder
	a.header.Write(&h)
	all := strings.ReplaceAll(h.String(), "\r\n", "\n") + "\n" + a.body
	for _, part := range r.holds {
		if !strings.Contains(all, part) {
			t.Errorf("%s: no %q in\n%.1500s", name, part, all)
		}
	}
	for _, part := range r.lacks {
		if strings.Contains(all, part) {
			t.Errorf("%s: %q in\n%.1500s", name, part, all)
		}
	}
}
