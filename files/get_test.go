package files

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// taker is a response that notes where the bytes that it sends come from.
type taker struct {
	*httptest.ResponseRecorder
	from []io.Reader
}

func (w *taker) ReadFrom(r io.Reader) (int64, error) {
	if l, ok := r.(*io.LimitedReader); ok {
		w.from = append(w.from, l.R)
	} else {
		w.from = append(w.from, r)
	}
	return io.Copy(w.ResponseRecorder, r)
}

// TestFileGoesToTheSocket holds X5: a file and a range of one are given to the response as the open file
// itself, which is what lets the kernel copy it.
func TestFileGoesToTheSocket(t *testing.T) {
	g := newRig(t)
	g.write("f", strings.Repeat("x", 10_000))
	g.open(map[string]any{})
	for _, ranges := range []string{"", "bytes=5000-8999"} {
		w := &taker{ResponseRecorder: httptest.NewRecorder()}
		r := httptest.NewRequest(http.MethodGet, "/xfer/f", nil)
		if ranges != "" {
			r.Header.Set("Range", ranges)
		}
		g.share.ServeHTTP(w, r)
		if len(w.from) != 1 {
			t.Fatalf("%q: %d, sent %d times", ranges, w.Code, len(w.from))
		}
		if _, ok := w.from[0].(*os.File); !ok {
			t.Errorf("%q: from a %T", ranges, w.from[0])
		}
	}
}

// TestLargeFolder holds X5: a folder is listed whole; only a search ends at its limit, and says so.
func TestLargeFolder(t *testing.T) {
	g := newRig(t)
	const files = maxFound + 1
	for n := range files {
		g.write("f"+strconv.Itoa(n), "")
	}
	g.open(map[string]any{})
	if got := strings.Count(g.do("GET", "/xfer/?simple", "").body, "\n"); got != files {
		t.Errorf("a folder of %d files is listed with %d", files, got)
	}
	var found struct {
		Paths     []struct{}
		Truncated bool
	}
	if err := json.Unmarshal([]byte(g.do("GET", "/xfer/?json&q=f", "").body), &found); err != nil || len(found.Paths) != maxFound || !found.Truncated {
		t.Errorf("a search: %d, truncated %v, %v", len(found.Paths), found.Truncated, err)
	}
}

// TestReplacedWhileAppending holds X5: an append that waits for its bytes while another upload takes the
// place of its empty file does not say that it succeeded.
func TestReplacedWhileAppending(t *testing.T) {
	g := newRig(t)
	g.open(map[string]any{})
	if a := g.do("PUT", "/xfer/f", ""); a.status != 201 {
		t.Fatal(a)
	}
	body, send := io.Pipe()
	req, _ := http.NewRequest(http.MethodPatch, g.server.URL+"/xfer/f", body)
	req.Header.Set("X-Update-Range", "append")
	status := make(chan int, 1)
	go func() {
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		res.Body.Close()
		status <- res.StatusCode
	}()
	made := &g.share.live().made
	borrowed := func() bool { // asking with another append would be in its way
		made.mu.Lock()
		defer made.mu.Unlock()
		return made.files["f"].busy
	}
	for deadline := time.Now().Add(10 * time.Second); !borrowed(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the append does not begin")
		}
	}
	if a := g.do("PUT", "/xfer/f", "whole"); a.status != 201 {
		t.Fatal(a)
	}
	_, _ = io.WriteString(send, "piece")
	send.Close()
	if got := <-status; got != 409 {
		t.Errorf("the append: %d", got)
	}
	if got := g.read("f"); got != "whole" {
		t.Errorf("f: %q", got)
	}
}
