package tests

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// X5: a download is copied to the socket by the kernel, through the whole of the bridge: nothing between
// file and socket takes the bytes in its own hands. Watched with strace where that is at hand.
func TestDownloadIsSentByTheKernel(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not here")
	}
	s := startShare(t, `{}`)
	const size = 16 << 20
	if err := os.WriteFile(filepath.Join(s.dir, "f"), make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-e", "trace=sendfile,sendfile64", "-o", out, "-p", strconv.Itoa(s.pid))
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	if err != nil || !strings.Contains(line, "attached") {
		_ = cmd.Wait()
		t.Skipf("strace may not look here: %s", line)
	}
	var n counter
	if resp, err := s.send("GET", "f", nil, 0, &n); err != nil || resp.StatusCode != http.StatusOK || n != size {
		t.Errorf("%d bytes, %v, %v", n, resp, err)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	_, _ = io.Copy(io.Discard, said)
	_ = cmd.Wait() // it ends by the signal
	trace, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var sent int64
	for _, found := range regexp.MustCompile(`sendfile(?:64)?(?:\(| resumed).*= (\d+)\n`).FindAllStringSubmatch(string(trace), -1) {
		part, _ := strconv.ParseInt(found[1], 10, 64)
		sent += part
	}
	if sent < size*9/10 {
		t.Errorf("the kernel sent %d of %d bytes itself:\n%.2000s", sent, size, trace)
	}
}
