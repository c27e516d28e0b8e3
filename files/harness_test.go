package files

import (
	"archive/zip"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// rig is a bridge as far as this package knows it: a share behind a real socket.
type rig struct {
	t      testing.TB
	share  *Share
	server *httptest.Server
	dir    string // what is shared unless a test says otherwise
	public string // the open tunnel, "" without one
	own    []string
	access Access
	max    int64
	mu     sync.Mutex
}

func newRig(t testing.TB, change ...func(*Options)) *rig {
	g := &rig{t: t, dir: t.TempDir(), max: 128 << 20}
	o := Options{
		Log: slog.New(slog.DiscardHandler), Home: g.dir, Cwd: g.dir,
		Base: func() (string, string) {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.server.URL, g.public
		},
		Own:     func() []string { g.mu.Lock(); defer g.mu.Unlock(); return g.own },
		Access:  func() Access { g.mu.Lock(); defer g.mu.Unlock(); return g.access },
		MaxBody: func() int64 { g.mu.Lock(); defer g.mu.Unlock(); return g.max },
	}
	for _, c := range change {
		c(&o)
	}
	g.share = New(o)
	g.server = httptest.NewServer(g.share)
	t.Cleanup(func() {
		g.share.Close("bridge stopped")
		g.server.Close()
	})
	return g
}

// set changes what the options' functions answer.
func (g *rig) set(change func()) { g.mu.Lock(); change(); g.mu.Unlock() }

// tool calls a tool and returns its text.
func (g *rig) tool(name string, args any) (string, bool) {
	g.t.Helper()
	raw, ok := args.(string)
	if !ok {
		b, err := json.Marshal(args)
		if err != nil {
			g.t.Fatal(err)
		}
		raw = string(b)
	}
	for _, tool := range g.share.Tools() {
		if tool.Name == name {
			return tool.Run(context.Background(), "session-1", []byte(raw))
		}
	}
	g.t.Fatalf("no tool %s", name)
	return "", false
}

// open shares and returns the parsed result.
func (g *rig) open(args map[string]any) map[string]any {
	g.t.Helper()
	if args["path"] == nil {
		args["path"] = g.dir
	}
	text, isError := g.tool("xfer_share", args)
	if isError {
		g.t.Fatalf("xfer_share %v: %s", args, text)
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		g.t.Fatal(err)
	}
	return m
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends one request; header is pairs of name and value. The path goes out as it is written.
func (g *rig) do(method, path, body string, header ...string) answer {
	g.t.Helper()
	return do(g.t, g.server.URL, method, path, body, header...)
}

func do(t testing.TB, base, method, path, body string, header ...string) answer {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, base+path, r)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{res.StatusCode, res.Header, string(b)}
}

// write makes a file of the shared folder, with its parents.
func (g *rig) write(name, content string) string {
	g.t.Helper()
	p := filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		g.t.Fatal(err)
	}
	return p
}

// read is a file of the shared folder, "<none>" where there is none.
func (g *rig) read(name string) string {
	g.t.Helper()
	b, err := os.ReadFile(filepath.Join(g.dir, name))
	if os.IsNotExist(err) {
		return "<none>"
	}
	if err != nil {
		g.t.Fatal(err)
	}
	return string(b)
}

// leftovers are the names of uploads that were not cleared away.
func (g *rig) leftovers() []string {
	var left []string
	filepath.WalkDir(g.dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), tempMark) {
			left = append(left, p)
		}
		return nil
	})
	return left
}

// try is do, and reads through archives.
func (g *rig) try(method, path, body string, header ...string) answer {
	g.t.Helper()
	a := g.do(method, path, body, header...)
	if a.header.Get("Content-Type") == "application/zip" && a.body != "" {
		z, err := zip.NewReader(strings.NewReader(a.body), int64(len(a.body)))
		if err != nil {
			g.t.Errorf("%s: %v", path, err)
			return a
		}
		for _, entry := range z.File {
			a.body += entry.Name
			if r, err := entry.Open(); err == nil {
				content, _ := io.ReadAll(r)
				a.body += string(content)
			}
		}
	}
	return a
}

// tree is every name below dir with its content, or with where a link points.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(p)
			all[rel] = "-> " + to
		case d.IsDir():
			all[rel] = "folder"
		default:
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			all[rel] = string(b)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// agentFolder puts a bridge's own files into the shared folder.
func (g *rig) agentFolder() map[string]string {
	g.t.Helper()
	g.write("agent/a2mcp.json", "SECRET")
	g.write("agent/a2mcp.log", "SECRET")
	g.write("agent/a2mcp.log.1", "SECRET")
	g.write("agent/a2mcp.run/1.json", "SECRET")
	g.write("agent/moved.log", "SECRET") // as A2MCP_AUDIT may name it
	g.write("agent/data/1", "SECRET")
	agent := filepath.Join(g.dir, "agent")
	g.set(func() {
		for _, name := range []string{"a2mcp.json", "a2mcp.log", "a2mcp.run", "a2mcp.installs.json", "a2mcp.log.1", "moved.log", "data"} {
			g.own = append(g.own, filepath.Join(agent, name))
		}
	})
	return tree(g.t, agent)
}

// rounds is how often the racing tests go round.
func rounds() int {
	if os.Getenv("A2MCP_SOAK") != "" {
		return 3000
	}
	return 8
}
