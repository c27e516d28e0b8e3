package files

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// raw sends a request line as it is written, past every client's tidying, and returns the answer.
func (g *rig) raw(method, target string, header ...string) answer {
	g.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(g.server.URL, "http://"))
	if err != nil {
		g.t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n", method, target)
	for i := 0; i < len(header); i += 2 {
		fmt.Fprintf(conn, "%s: %s\r\n", header[i], header[i+1])
	}
	fmt.Fprint(conn, "\r\nevil")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, target, err)
	}
	defer res.Body.Close()
	var body strings.Builder
	_, _ = bufio.NewReader(res.Body).WriteTo(&body) // what was cut is judged by what there is
	return answer{res.StatusCode, res.Header, body.String()}
}

// TestDotDot holds X5 for every way to write a path that leads upwards, in the path and in Destination.
func TestDotDot(t *testing.T) {
	g := newRig(t)
	above := g.dir
	g.dir = filepath.Join(above, "share")
	g.write("sub/x", "inside")
	if err := os.WriteFile(filepath.Join(above, "secret"), []byte("SECRET"), 0o644); err != nil {
		t.Fatal(err)
	}
	g.open(map[string]any{"path": g.dir})
	var ways []string
	for _, up := range []string{
		"..", "%2e%2e", "%2E%2e", ".%2e", "%2e.", "%252e%252e", "%25%32%65%25%32%65",
		"%c0%ae%c0%ae", "%e0%80%ae%e0%80%ae", "%f0%80%80%ae%f0%80%80%ae", "%uff0e%uff0e", "%ef%bc%8e%ef%bc%8e",
		"...", "....", "..%20", "..%00", "..%09", "..;", "..;x=y", "%2e%2e%00", "%00..", ".%00.", "..%0d%0a", "..\\", "..%5c",
	} {
		for _, slash := range []string{"/", "%2f", "%2F", "%5c", "\\", "%c0%af", "%252f", "//", "/./", "%00/"} {
			ways = append(ways, up+slash+"secret", "sub"+slash+up+slash+up+slash+"secret", up+slash+"share"+slash+up+slash+"secret")
		}
	}
	abs := filepath.ToSlash(filepath.Join(above, "secret"))
	ways = append(ways, abs, "/"+abs, "%2f"+strings.TrimPrefix(abs, "/"), "file://"+abs, "~/secret", "%7e/secret")
	before := tree(t, above)
	for _, way := range ways {
		for _, end := range []string{"", "?hash", "?json"} {
			if a := g.raw("GET", "/xfer/"+way+end); strings.Contains(a.body, "SECRET") || a.status < 400 {
				t.Errorf("GET %s: %d %q", way+end, a.status, a.body)
			}
		}
		if a := g.raw("COPY", "/xfer/"+way, "Destination", "/xfer/copy"); a.status < 400 {
			t.Errorf("COPY from %s: %d", way, a.status)
		}
		if a := g.raw("PROPFIND", "/xfer/"+way); a.status < 400 {
			t.Errorf("PROPFIND %s: %d %q", way, a.status, a.body)
		}
	}
	if diff := cmp.Diff(before, tree(t, above)); diff != "" {
		t.Fatal(diff)
	}
	// Where such a name is an ordinary one, writing may succeed, inside.
	delete(before, "share")
	for i, way := range ways {
		way = strings.Replace(way, "secret", fmt.Sprint("w", i), 1)
		for _, status := range []int{
			g.raw("PUT", "/xfer/"+way).status, g.raw("MKCOL", "/xfer/"+way+"d").status,
			g.raw("COPY", "/xfer/sub/x", "Destination", "/xfer/"+way+"c").status, g.raw("LOCK", "/xfer/"+way+"l").status,
		} {
			if status >= 500 {
				t.Errorf("%s: %d", way, status)
			}
		}
	}
	after, err := os.ReadDir(above)
	if err != nil || len(after) != 2 {
		t.Errorf("beside the share: %v, %v", after, err)
	}
}

// TestLinksOut holds X5, F14 for links that stand still: to files, folders, the folder above, and through
// one another.
func TestLinksOut(t *testing.T) {
	g := newRig(t)
	outside := t.TempDir()
	for _, name := range []string{"f", "sub/g"} {
		os.MkdirAll(filepath.Dir(filepath.Join(outside, name)), 0o755)
		if err := os.WriteFile(filepath.Join(outside, name), []byte("SECRET"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	g.write("in/f", "inside")
	for name, to := range map[string]string{
		"abs": outside, "file": filepath.Join(outside, "f"), "up": "..", "rel": "../" + filepath.Base(outside), "hop": "in/hop",
		"in/hop": "../abs", "loop": "loop", "dangling": filepath.Join(outside, "none"), "etc": "/etc", "root": "/", "good": "in",
	} {
		if err := os.Symlink(to, filepath.Join(g.dir, name)); err != nil {
			t.Skip("no links here: ", err)
		}
	}
	before := tree(t, outside)
	g.open(map[string]any{})
	names := []string{"abs", "abs/", "abs/f", "abs/sub", "abs/sub/g", "file", "up", "up/", "rel/f", "hop/f", "in/hop/f", "loop", "loop/x",
		"dangling", "etc", "etc/passwd", "root/etc/passwd"}
	for _, name := range names {
		for _, r := range []trial{
			{method: "GET"}, {method: "HEAD"}, {method: "GET", path: "?zip"}, {method: "GET", path: "?hash"}, {method: "GET", path: "?json"},
			{method: "GET", path: "?q=f"}, {method: "PROPFIND"}, {method: "PATCH", header: []string{"X-Update-Range", "append"}, body: "evil"},
			{method: "PUT", body: "evil"}, {method: "PUT", path: "/new", body: "evil"}, {method: "PUT", path: "/a/b/new", body: "evil"},
			{method: "MKCOL"}, {method: "MKCOL", path: "/new"}, {method: "LOCK"}, {method: "LOCK", path: "/new"}, {method: "PROPPATCH"},
			{method: "COPY", header: []string{"Destination", "/xfer/copy"}},
		} {
			a := g.try(r.method, "/xfer/"+name+r.path, r.body, r.header...)
			if a.status < 400 || a.status >= 500 || strings.Contains(a.body, "SECRET") {
				t.Errorf("%s %s: %d %.200s", r.method, name+r.path, a.status, a.body)
			}
		}
		if a := g.do("COPY", "/xfer/in/f", "", "Destination", "/xfer/"+name+"/new"); a.status < 400 || a.status >= 500 {
			t.Errorf("COPY to %s: %d", name, a.status)
		}
	}
	for _, listing := range []string{"?json", "?simple", "", "?zip", "?q=&json", "?q=a&json"} {
		a := g.try("GET", "/xfer/"+listing, "")
		for _, name := range []string{"SECRET", "abs", "etc", "dangling", "loop"} {
			if a.status != 200 || strings.Contains(a.body, `"`+name+`"`) || strings.Contains(a.body, name+"\n") || name == "SECRET" && strings.Contains(a.body, name) {
				t.Errorf("%s: %d, shows %s", listing, a.status, name)
			}
		}
	}
	if a := g.do("GET", "/xfer/good/f", ""); a.body != "inside" {
		t.Errorf("a link inside: %v", a)
	}
	if diff := cmp.Diff(before, tree(t, outside)); diff != "" {
		t.Error(diff)
	}
}

// TestOwnFiles holds X5: a share of the agent's folder, or of the one above, shows nothing of the bridge and
// changes nothing of it, under whatever name.
func TestOwnFiles(t *testing.T) {
	for _, below := range []string{"", "agent"} {
		t.Run("share of "+below, func(t *testing.T) { testOwnFiles(t, below) })
	}
}

func testOwnFiles(t *testing.T, below string) {
	g := newRig(t)
	before := g.agentFolder()
	top := filepath.Join(g.dir, below)
	at := "/xfer/"
	if below == "" {
		at += "agent/"
	}
	links := filepath.Join(top, "links")
	os.Mkdir(links, 0o755)
	agent := filepath.Join(g.dir, "agent")
	os.Link(filepath.Join(agent, "a2mcp.json"), filepath.Join(links, "hard.json"))
	os.Link(filepath.Join(agent, "a2mcp.run/1.json"), filepath.Join(links, "run.json"))
	rel, _ := filepath.Rel(links, agent)
	os.Symlink(filepath.Join(rel, "a2mcp.log"), filepath.Join(links, "soft.log"))
	os.Symlink(filepath.Join(rel, "a2mcp.run"), filepath.Join(links, "run"))
	os.Symlink(rel, filepath.Join(links, "dir"))
	g.open(map[string]any{"path": top})

	var names []string
	for name := range before {
		if name != "." {
			names = append(names, at+name)
		}
	}
	for _, name := range []string{"hard.json", "run.json", "soft.log", "run", "run/1.json", "dir/a2mcp.json", "dir/a2mcp.run/1.json", "dir/moved.log", "dir/data/1"} {
		names = append(names, "/xfer/links/"+name)
	}
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		names = append(names, at+"A2MCP.JSON", at+"A2mcp.Log")
	}
	for _, name := range names {
		for _, r := range []trial{
			{method: "GET"}, {method: "HEAD"}, {method: "GET", path: "?hash"}, {method: "GET", path: "?json"}, {method: "GET", path: "?zip"},
			{method: "GET", path: "/"}, {method: "GET", path: "/?q=json"}, {method: "PROPFIND"}, {method: "PUT", body: "evil"},
			{method: "PATCH", header: []string{"X-Update-Range", "append"}, body: "evil"}, {method: "LOCK"}, {method: "PROPPATCH"},
			{method: "COPY", header: []string{"Destination", "/xfer/copy"}}, {method: "DELETE"}, {method: "MOVE", header: []string{"Destination", "/xfer/copy"}},
		} {
			a := g.try(r.method, name+r.path, r.body, r.header...)
			if a.status < 400 || a.status >= 500 || strings.Contains(a.body, "SECRET") {
				t.Errorf("%s %s: %d %.200s", r.method, name+r.path, a.status, a.body)
			}
		}
	}
	for _, dir := range []string{at, "/xfer/links/dir/"} {
		for _, name := range []string{"a2mcp.installs.json", "a2mcp.log.2", ".a2mcp.json.123", "a2mcp.json~", "a2mcp.run/2.json", "a2mcp.installs.json/x", "moved.log", "moved.log.1", "data/2"} {
			for _, r := range []trial{{method: "PUT", body: "evil"}, {method: "MKCOL"}, {method: "LOCK"}} {
				if a := g.do(r.method, dir+name, r.body, r.header...); a.status < 400 || a.status >= 500 {
					t.Errorf("%s %s: %d", r.method, dir+name, a.status)
				}
			}
		}
	}
	for _, listing := range []string{at, at + "?json", at + "?simple", at + "?zip", "/xfer/?q=a2mcp&json", "/xfer/?q=json&simple", "/xfer/links?json", "/xfer/?zip", "/xfer/links/dir?zip"} {
		a := g.try("GET", listing, "")
		for _, name := range []string{"SECRET", "a2mcp.json", "a2mcp.run", "a2mcp.log", "hard.json", "soft.log"} {
			if a.status != 200 || strings.Contains(a.body, name) {
				t.Errorf("%s: %d, shows %s", listing, a.status, name)
			}
		}
	}
	after := tree(t, agent)
	for name := range after {
		if strings.HasPrefix(name, "links") {
			delete(after, name)
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
}

// TestOwnFileReplaced holds X5: a hard link to a configuration that was replaced meanwhile stays hidden, for
// its token may still be in force; a new file is never taken for an old one.
func TestOwnFileReplaced(t *testing.T) {
	g := newRig(t)
	g.agentFolder()
	config := filepath.Join(g.dir, "agent/a2mcp.json")
	if err := os.Link(config, filepath.Join(g.dir, "kept")); err != nil {
		t.Skip("no hard links here: ", err)
	}
	g.open(map[string]any{})
	for i := range 5 {
		next := g.write("agent/.a2mcp.json.1", fmt.Sprint("SECRET", i))
		if err := os.Rename(next, config); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for _, path := range []string{"kept", "kept?hash", "?zip", "agent/a2mcp.json"} {
				if a := g.try("GET", "/xfer/"+path, ""); strings.Contains(a.body, "SECRET") || a.status != 404 && path != "?zip" {
					t.Fatalf("%s: %d %.100s", path, a.status, a.body)
				}
			}
		}
		name := fmt.Sprint("/xfer/new", i)
		if a := g.do("PUT", name, "x"); a.status != 201 {
			t.Errorf("PUT: %d", a.status)
		}
		if a := g.do("GET", name, ""); a.body != "x" {
			t.Errorf("GET of a new file: %d", a.status)
		}
	}
}

// TestOtherBridgesFiles holds X5: the files of the same user's other bridges, and an editor's copies of a
// configuration, are not there either, in whatever folder they stand.
func TestOtherBridgesFiles(t *testing.T) {
	g := newRig(t)
	names := []string{"other/a2mcp.json", "other/a2mcp.log", "other/a2mcp.log.1", "other/a2mcp.run/7.json", "other/#a2mcp.json#", "other/.#a2mcp.json",
		"other/a2mcp.json___jb_tmp___", "other/a2mcp.json.bak", "other/A2MCP.JSON"}
	for _, name := range names {
		g.write(name, "SECRET")
	}
	g.write("other/a2mcp.md", "a page of somebody's")
	g.open(map[string]any{})
	for _, name := range names {
		for _, r := range []trial{{method: "GET"}, {method: "GET", path: "?hash"}, {method: "PUT", body: "evil"}} {
			if a := g.try(r.method, "/xfer/"+url.PathEscape(name)+r.path, r.body); a.status < 400 || strings.Contains(a.body, "SECRET") {
				t.Errorf("%s %s: %d %.100s", r.method, name+r.path, a.status, a.body)
			}
		}
	}
	for _, listing := range []string{"/xfer/other/?json", "/xfer/?zip", "/xfer/?q=a2mcp&json"} {
		a := g.try("GET", listing, "")
		if a.status != 200 || strings.Contains(a.body, "SECRET") || strings.Contains(strings.ToLower(a.body), "a2mcp.json") {
			t.Errorf("%s: %d %.300s", listing, a.status, a.body)
		}
	}
	if a := g.do("GET", "/xfer/other/a2mcp.md", ""); a.status != 200 {
		t.Errorf("a file that only looks a little like one: %d", a.status)
	}
	for _, path := range []string{"other/a2mcp.json", "other/a2mcp.run"} {
		if text, isError := run(g.share, "xfer_share", `{"path":"`+filepath.Join(g.dir, path)+`"}`); !isError {
			t.Errorf("%s is shared: %s", path, text)
		}
	}
}
