//go:build unix

package tests

import (
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
	"time"
)

// C1: on a terminal both clients show how long a call has been running, and take
// that away before the answer.
func TestCallersClock(t *testing.T) {
	python, err := exec.LookPath("python3") // whose pty module gives the terminal
	if err != nil {
		t.Skip("python3 is not here: the clocks were not looked at")
	}
	server := fakeBridge(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(3500 * time.Millisecond) // the clock ticks once a second, from the second one on
		answerText("at last", false)(w, r)
	})
	shown := regexp.MustCompile(`^\r"waits" 2s(\r"waits" \d+s)*\r\x1b\[Kat last`)
	for name, argv := range callers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spawn := []string{"-c", "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"}
			cmd := exec.Command(python, slices.Concat(spawn, argv, []string{"--url", server.URL, "waits"})...)
			cmd.Env = append(os.Environ(), "A2MCP_TOKEN=right")
			out, err := cmd.CombinedOutput()
			if err != nil || !shown.Match(out) {
				t.Errorf("%v: %q", err, out)
			}
		})
	}
}
