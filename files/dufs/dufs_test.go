package dufs

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain plays dufs where a test starts this binary again: the manner is the name of the program.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "--config" {
		play(filepath.Base(os.Args[0]), os.Args[2])
	}
	os.Exit(m.Run())
}

// play is a dufs that tells of each request what it got.
func play(manner, path string) {
	info, err := os.Stat(path)
	data, readErr := os.ReadFile(path)
	var config map[string]any
	if err != nil || readErr != nil || json.Unmarshal(data, &config) != nil {
		fmt.Fprintln(os.Stderr, "no configuration")
		os.Exit(1)
	}
	switch manner {
	case "dies":
		fmt.Fprintln(os.Stderr, "Error: some reason of its own")
		os.Exit(1)
	case "silent":
		time.Sleep(time.Hour)
	}
	pair := config["auth"].([]any)[0].(string)
	pair = strings.TrimSuffix(pair, "@/:rw")
	answer := func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if user+":"+password != pair {
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("WWW-Authenticate", "Digest")
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		switch {
		case r.URL.Path == "/xfer/go":
			http.Redirect(w, r, "/xfer/elsewhere", http.StatusFound)
			return
		case r.Method == http.MethodHead && strings.Contains(r.URL.Path, "new"):
			w.WriteHeader(http.StatusNotFound)
			return
		case r.Method == http.MethodPut || r.Method == "COPY":
			w.WriteHeader(http.StatusCreated)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"method": r.Method, "uri": r.RequestURI, "encoding": r.Header.Get("Accept-Encoding"), "body": len(body),
			"hop": r.Header.Get("X-Client-Hop"), "env": os.Environ(), "config": config, "mode": info.Mode().Perm(), "args": os.Args[1:],
		})
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%v", config["port"]))
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	if manner == "floods" {
		go func() {
			for {
				fmt.Println(strings.Repeat("noise ", 1000))
			}
		}()
	}
	_ = http.Serve(l, http.HandlerFunc(answer))
	os.Exit(0)
}

// begin starts a fake of a manner and puts a caller's server before it.
func begin(t *testing.T, manner string) (*Server, *httptest.Server) {
	t.Helper()
	t.Setenv("DUFS_ALLOW_ALL", "true")
	t.Setenv("A2MCP_SECRET", "secret")
	s, err := Start(t.Context(), Options{Binary: binary(t, manner), Path: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	front := httptest.NewServer(s.Handler())
	t.Cleanup(front.Close)
	return s, front
}

func binary(t *testing.T, manner string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), manner)
	if err := os.Symlink(self, path); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	return path
}

type got struct {
	status                     int
	header                     http.Header
	Method, URI, Encoding, Hop string
	Body                       int
	Env, Args                  []string
	Config                     map[string]any
	Mode                       os.FileMode
	text                       string
}

func ask(t *testing.T, front *httptest.Server, method, uri string, header ...string) got {
	t.Helper()
	req, err := http.NewRequest(method, front.URL+uri, strings.NewReader("12345"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer caller")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Transport{}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	g := got{status: resp.StatusCode, header: resp.Header, text: string(body)}
	_ = json.Unmarshal(body, &g)
	return g
}

// TestPassesOn: path and query as they came, the pair in place of the bearer, nothing of either side's
// connection, nothing of the operator's environment (X6, A5).
func TestPassesOn(t *testing.T) {
	s, front := begin(t, "good")
	g := ask(t, front, http.MethodGet, "/xfer/a%2Fb%20c;x?json&q=a%20b;c&%zz", "Connection", "X-Client-Hop", "X-Client-Hop", "1", "Accept-Encoding", "br")
	if g.status != http.StatusOK || g.URI != "/xfer/a%2Fb%20c;x?json&q=a%20b;c&%zz" || g.Encoding != "identity" || g.Hop != "" {
		t.Errorf("%+v", g)
	}
	if g.header.Get("Www-Authenticate") != "" || g.header.Get("X-Hop") != "" {
		t.Errorf("passed on: %v", g.header)
	}
	if strings.Contains(strings.Join(g.Env, "\n"), "DUFS_") || strings.Contains(strings.Join(g.Env, "\n"), "secret") || len(g.Args) != 2 || g.Mode != 0o600 {
		t.Errorf("started with %v, %v, configuration %o", g.Args, g.Env, g.Mode)
	}
	if _, err := os.Stat(g.Args[1]); !os.IsNotExist(err) {
		t.Errorf("the configuration is still there: %v", err)
	}
	for name, want := range map[string]any{"allow-upload": true, "allow-delete": false, "path-prefix": "xfer", "allow-symlink": false} {
		if g.Config[name] != want {
			t.Errorf("%s is %v", name, g.Config[name])
		}
	}
	if g := ask(t, front, http.MethodGet, "/xfer/go"); g.status != http.StatusFound || g.header.Get("Location") != "/xfer/elsewhere" {
		t.Errorf("a redirect: %d %v", g.status, g.header)
	}
	resp, err := http.Get(s.base() + "/xfer/")
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the pair: %v, %v", resp, err)
	}
}

// TestRefuses: what would break the promise of upload only does not reach dufs (X6, X7).
func TestRefuses(t *testing.T) {
	_, front := begin(t, "good")
	for _, c := range []struct {
		method, uri string
		header      []string
		status      int
	}{
		{"CHECKAUTH", "/xfer/", nil, 405},
		{"LOGOUT", "/xfer/", nil, 405},
		{"GET", "/xfer/?tokengen", nil, 403},
		{"GET", "/xfer/a?x=1&tokengen=1", nil, 403},
		{"GET", "/xfer/a?tokengen=;", nil, 403}, // net/url drops both of these
		{"GET", "/xfer/a?token%67en=%zz", nil, 403},
		{"DELETE", "/xfer/a", nil, 403},
		{"MOVE", "/xfer/a", []string{"Destination", "/xfer/new"}, 403},
		{"COPY", "/xfer/a", []string{"Destination", "/xfer/there"}, 403},
		{"COPY", "/xfer/a", []string{"Destination", "/xfer/100%.txt"}, 403},  // a name to dufs, an error to net/url
		{"COPY", "/xfer/a", []string{"Destination", "//xfer/xfer/new"}, 403}, // /xfer/xfer/new to dufs, /xfer/new to net/url
		{"COPY", "/xfer/a", nil, 403},
		{"COPY", "/xfer/a", []string{"Destination", "http://host/xfer/new"}, 201},
		{"PATCH", "/xfer/old", []string{"X-Update-Range", "append"}, 403},
		{"PATCH", "/xfer/new", []string{"X-Update-Range", "append"}, 200}, // the copy made it
		{"PUT", "/xfer/b", nil, 201},
		{"PATCH", "/xfer/b", []string{"X-Update-Range", "append"}, 200},
		{"PATCH", "/xfer//b", []string{"X-Update-Range", "append"}, 200},
		{"PATCH", "/xfer/b", []string{"X-Update-Range", "bytes=0-"}, 403},
		{"PATCH", "/xfer/b", nil, 403},
	} {
		if g := ask(t, front, c.method, c.uri, c.header...); g.status != c.status || c.status >= 400 && g.Method != "" {
			t.Errorf("%s %s %v: %d %s", c.method, c.uri, c.header, g.status, g.text)
		}
	}
}

// TestDown: a dufs that has gone is 502 at once, also for a body that waits for permission (X6, F09).
func TestDown(t *testing.T) {
	s, front := begin(t, "good")
	s.Stop()
	if g := ask(t, front, http.MethodGet, "/xfer/"); g.status != http.StatusBadGateway || strings.Contains(g.text, fmt.Sprint(s.Port())) {
		t.Errorf("%d %s", g.status, g.text)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(front.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprint(conn, "PUT /xfer/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, " 502 ") {
		t.Errorf("%q, %v", line, err)
	}
}

// TestDoesNotStart: the child's own words, or that there were none; no process is left (X4).
func TestDoesNotStart(t *testing.T) {
	_, err := Start(t.Context(), Options{Binary: binary(t, "dies"), Path: "/", Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "some reason of its own") {
		t.Errorf("dies: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = Start(ctx, Options{Binary: binary(t, "silent"), Path: "/", Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("silent: %v", err)
	}
}

// TestFlood: what dufs prints neither stops nor fills anything.
func TestFlood(t *testing.T) {
	_, front := begin(t, "floods")
	for range 20 {
		if g := ask(t, front, http.MethodPut, "/xfer/b"); g.status != http.StatusCreated || g.Body != 5 {
			t.Fatalf("%+v", g)
		}
	}
}
