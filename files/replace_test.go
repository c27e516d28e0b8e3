package files

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestFiftyShares holds X2, X7, X8 and F19 with the built-in server: while callers read without a pause,
// fifty shares in quick succession and stops in between show the newest at once and nothing of an old one,
// and leave one record of each beginning and end.
func TestFiftyShares(t *testing.T) {
	g := newRig(t)
	b := &book{}
	g.share.write = b.write
	for i := range 50 {
		g.write(fmt.Sprintf("d%d/which", i), fmt.Sprint("d", i))
	}
	stop := make(chan struct{})
	var reading sync.WaitGroup
	for range 2 {
		reading.Go(func() {
			last := 0
			for {
				select {
				case <-stop:
					return
				default:
				}
				res, err := http.Get(g.server.URL + "/xfer/which")
				if err != nil {
					continue // cut with its share
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if err != nil || res.StatusCode == http.StatusNotFound {
					continue
				}
				var n int
				if _, err := fmt.Sscanf(string(body), "d%d", &n); res.StatusCode != http.StatusOK || err != nil || n < last {
					t.Errorf("%d %q after d%d", res.StatusCode, body, last)
				}
				last = n
			}
		})
	}
	stopped := map[int]bool{}
	for i := range 50 {
		name := fmt.Sprint("d", i)
		if m := g.open(map[string]any{"path": name}); m["replaced"] != (i > 0 && !stopped[i-1]) {
			t.Errorf("%s: replaced is %v", name, m["replaced"])
		}
		if a := g.do("GET", "/xfer/which", ""); a.body != name {
			t.Errorf("%s is served as %d %q", name, a.status, a.body)
		}
		if text, _ := g.tool("xfer_status", `{}`); !strings.Contains(text, filepath.Join(g.dir, name)+`"`) {
			t.Errorf("%s: status %s", name, text)
		}
		if i%7 == 3 {
			stopped[i] = true
			if text, isError := g.tool("xfer_stop", `{}`); isError || !strings.Contains(text, `"stopped":true`) {
				t.Error(text)
			}
			if a := g.do("GET", "/xfer/which", ""); a.status != 404 {
				t.Errorf("%s after its end: %d", name, a.status)
			}
		}
	}
	close(stop)
	reading.Wait()
	g.share.Close("bridge stopped")
	for i := range 50 {
		name := fmt.Sprint("d", i)
		want := "close " + name + " replaced"
		switch {
		case stopped[i]:
			want = "stop " + name
		case i == 49:
			want = "close " + name + " bridge stopped"
		}
		ends := b.count("stop " + name)
		for _, why := range []string{"replaced", "ttl expired", "bridge stopped"} {
			ends += b.count("close " + name + " " + why)
		}
		if b.count("share "+name) != 1 || ends != 1 || b.count(want) != 1 {
			t.Errorf("%s: want one %q in %q", name, want, b.said())
		}
	}
}
