package files

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// F09: a client that waits for 100 Continue gets a refusal at once and is not asked for the body (X7).
func TestRefusedBeforeContinue(t *testing.T) {
	g := newRig(t)
	g.write("there", "content")
	g.open(map[string]any{})
	for _, c := range []struct {
		line   string
		header string
		status int
	}{
		{"PUT /xfer/there", "", 403},
		{"PUT /xfer/../x", "", 400},
		{"PATCH /xfer/there", "X-Update-Range: append\r\n", 403},
		{"MKCOL /xfer/new", "", 415},
		{"DELETE /xfer/there", "", 403},
		{"PUT /xfer/new", "", 100},
	} {
		conn, err := net.Dial("tcp", g.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n%s\r\n", c.line, c.header)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
		} else if resp.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", c.line, resp.StatusCode, c.status)
		}
		conn.Close()
	}
}
