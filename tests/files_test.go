package tests

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// liveShare is a folder shared by the built binary.
type liveShare struct {
	*liveBridge
	dir string
}

func startShare(t *testing.T, config string) *liveShare {
	t.Helper()
	s := &liveShare{startLive(t, config, echoArguments), t.TempDir()}
	sid := s.session(t)
	_, data, err := s.post(sid, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"xfer_share","arguments":{"path":%q}}}`, s.dir)))
	if err != nil || !bytes.Contains(data, []byte(`"isError":false`)) {
		t.Fatalf("xfer_share: %s, %v", data, err)
	}
	return s
}

// send sends a request below /xfer/ and reads the answer into sink.
func (s *liveShare) send(method, name string, body io.Reader, size int64, sink io.Writer, header ...string) (*http.Response, error) {
	req, err := http.NewRequest(method, s.url+"xfer/"+name, body)
	if err != nil {
		return nil, err
	}
	req.ContentLength = size
	req.Header.Set("Authorization", "Bearer "+s.token)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(sink, resp.Body)
	return resp, err
}

// noise is endless bytes that differ from place to place, and the sum of those that were read.
type noise struct {
	n   uint64
	sum hash.Hash
}

func newNoise() *noise { return &noise{sum: sha256.New()} }

func (z *noise) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(z.n>>20 ^ z.n>>8 ^ z.n)
		z.n++
	}
	z.sum.Write(p)
	return len(p), nil
}

// X5, F07: memory does not grow with the files: 120 MB up, a sparse file of 4 GB down, twenty of each at
// once.
func TestSoakTransfersTakeNoMemory(t *testing.T) {
	up, down, side := int64(4<<20), int64(64<<20), 4
	if os.Getenv("A2MCP_SOAK") != "" {
		up, down, side = 120<<20, 4<<30, 20
	}
	s := startShare(t, `{}`)
	sparse, err := os.Create(filepath.Join(s.dir, "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	if err := sparse.Truncate(down); err != nil {
		t.Skip("no sparse files here: ", err)
	}
	sparse.Close()
	before := peakMemory(t, s.pid)
	put := func(name string) {
		if resp, err := s.send("PUT", name, io.LimitReader(newNoise(), up), up, io.Discard); err != nil || resp.StatusCode != http.StatusCreated {
			t.Errorf("PUT %s: %v, %v", name, resp, err)
		}
	}
	get := func() {
		var n counter
		if resp, err := s.send("GET", "sparse", nil, 0, &n); err != nil || resp.StatusCode != http.StatusOK || int64(n) != down {
			t.Errorf("GET: %d bytes, %v, %v", n, resp, err)
		}
	}
	put("one")
	get()
	t.Logf("one after the other: peak memory grew by %d MiB", (peakMemory(t, s.pid)-before)>>20)
	var all sync.WaitGroup
	for i := range side {
		all.Go(func() { put(fmt.Sprint("many-", i)) })
		all.Go(get)
	}
	all.Wait()
	grown := peakMemory(t, s.pid) - before
	t.Logf("%d up and %d down at once: peak memory grew by %d MiB", side, side, grown>>20)
	if grown > 64<<20 {
		t.Errorf("peak memory grew by %d MiB", grown>>20)
	}
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

// X5, F16: 300 MB in pieces of 90 MB, one of them cut off and gone on with, arrive as they were.
func TestSoakUploadInPieces(t *testing.T) {
	size, piece := int64(3<<20), int64(900<<10)
	if os.Getenv("A2MCP_SOAK") != "" {
		size, piece = 300<<20, 90<<20
	}
	s := startShare(t, fmt.Sprintf(`{"maxBody":%d}`, piece))
	data := newNoise()
	for at := int64(0); at < size; at += piece {
		n := min(piece, size-at)
		method, want := "PATCH", http.StatusNoContent
		if at == 0 {
			method, want = "PUT", http.StatusCreated
		} else {
			s.breakOff(t, "big", n)
		}
		resp, err := s.send("HEAD", "big", nil, 0, io.Discard)
		if err != nil || at > 0 && resp.Header.Get("Content-Length") != strconv.FormatInt(at, 10) {
			t.Fatalf("HEAD at %d: %v, %v", at, resp, err)
		}
		resp, err = s.send(method, "big", io.LimitReader(data, n), n, io.Discard, "X-Update-Range", "append")
		if err != nil || resp.StatusCode != want {
			t.Fatalf("%s at %d: %v, %v", method, at, resp, err)
		}
	}
	var sum bytes.Buffer
	if _, err := s.send("GET", "big?hash", nil, 0, &sum); err != nil || sum.String() != fmt.Sprintf("%x", data.sum.Sum(nil)) {
		t.Errorf("sha256 %s, want %x; %v", &sum, data.sum.Sum(nil), err)
	}
}

// breakOff begins to append size bytes, sends half of them, hangs up, and waits until the file is given
// back.
func (s *liveShare) breakOff(t *testing.T, name string, size int64) {
	t.Helper()
	conn := s.dial(t)
	fmt.Fprintf(conn, "PATCH /xfer/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nX-Update-Range: append\r\nContent-Length: %d\r\n\r\n", name, s.token, size)
	if _, err := io.CopyN(conn, newNoise(), size/2); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	// An append that is refused because of its place changes nothing, and is told so only when no other one
	// is under way.
	waitFor(t, func() bool {
		resp, err := s.send("PATCH", name, strings.NewReader("x"), 1, io.Discard, "X-Update-Range", "bytes=0-")
		return err == nil && resp.StatusCode == http.StatusForbidden
	})
}

func (s *liveShare) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/"))
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
}

// X5, H3, F09: a client that asks before it sends (Expect: 100-continue) is answered at once where the
// answer is no, and never sends; where it is yes the file arrives.
func TestUploadThatAsksFirst(t *testing.T) {
	s := startShare(t, `{"maxBody":1000}`)
	if err := os.WriteFile(filepath.Join(s.dir, "taken"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, token string
		size        int
		status      int
	}{
		{"new", s.token, 10, http.StatusCreated},
		{"new2", "wrong" + s.token[5:], 10, http.StatusUnauthorized},
		{"new2", s.token, 1001, http.StatusRequestEntityTooLarge},
		{"taken", s.token, 10, http.StatusForbidden},
		{"../up", s.token, 10, http.StatusBadRequest},
	} {
		conn := s.dial(t)
		fmt.Fprintf(conn, "PUT /xfer/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", c.name, c.token, c.size)
		read := bufio.NewReader(conn)
		resp, err := http.ReadResponse(read, nil)
		if err == nil && resp.StatusCode == http.StatusContinue {
			_, _ = io.WriteString(conn, strings.Repeat("y", c.size))
			if c.status != http.StatusCreated {
				t.Errorf("%s of %d bytes: told to go on", c.name, c.size)
			}
			resp, err = http.ReadResponse(read, nil)
		}
		if err != nil || resp.StatusCode != c.status {
			t.Errorf("%s of %d bytes: %v, %v; want %d", c.name, c.size, resp, err, c.status)
		}
		conn.Close()
	}
	if text := s.stderr.String(); strings.Contains(text, "panic") {
		t.Error(text)
	}
	if got, _ := os.ReadFile(filepath.Join(s.dir, "new")); string(got) != strings.Repeat("y", 10) {
		t.Errorf("new: %q", got)
	}
}

// X5, X8: the bridge's own files are not there where the agent's folder itself is shared.
func TestShareOfTheAgentFolder(t *testing.T) {
	b := startLive(t, `{}`, echoArguments)
	sid := b.session(t)
	_, data, err := b.post(sid, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"xfer_share","arguments":{"path":%q}}}`, b.dir)))
	if err != nil || !bytes.Contains(data, []byte(`"isError":false`)) {
		t.Fatalf("xfer_share: %s, %v", data, err)
	}
	s := &liveShare{b, b.dir}
	own, err := os.ReadDir(b.dir)
	if err != nil || len(own) < 2 {
		t.Fatalf("%v, %v", own, err)
	}
	for _, entry := range own {
		for _, r := range [][2]string{{"GET", ""}, {"GET", "?hash"}, {"GET", "?zip"}, {"PROPFIND", ""}, {"PUT", ""}} {
			var body bytes.Buffer
			resp, err := s.send(r[0], entry.Name()+r[1], nil, 0, &body)
			if err != nil || resp.StatusCode < 400 || strings.Contains(body.String(), b.token) {
				t.Errorf("%s %s: %v, %v", r[0], entry.Name()+r[1], resp, err)
			}
		}
	}
	var body bytes.Buffer
	if _, err := s.send("GET", "?json", nil, 0, &body); err != nil {
		t.Fatal(err)
	}
	if paths := proto.Member(body.Bytes(), "paths"); !json.Valid(paths) || len(bytes.Join(bytes.Fields(paths), nil)) != len("[]") {
		t.Errorf("a fresh agent folder shows %s", &body)
	}
}
