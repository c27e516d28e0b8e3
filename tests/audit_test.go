package tests

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/a2mcp/a2mcp/audit"
)

// TestAuditFollows: `a2mcp audit --follow` shows what was there and each call as
// it ends, through rotations, once; it ends with Ctrl-C and no error (L4).
func TestAuditFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log, err := audit.Open(path, audit.Options{MaxBytes: 1200, Required: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	write := func(round int) {
		for record := range 6 {
			phase := []audit.Phase{audit.Start, audit.Done}[record%2]
			if err := log.Write(audit.Record{Time: time.Now(), ID: fmt.Sprint(3*round + record/2), Phase: phase, Tool: "t"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(0)
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, binary(t), "audit", "--follow", "--json", "--file", path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for round := range 5 { // the log is rotated in every second
		if round > 0 {
			write(round)
		}
		for call := range 3 {
			if want := fmt.Sprintf(`"id":"%d"`, 3*round+call); !lines.Scan() || !strings.Contains(lines.Text(), want) {
				t.Fatalf("got %q, want %s; %v", lines.Text(), want, lines.Err())
			}
		}
	}
	if _, err := os.Stat(path + ".1"); err != nil {
		t.Error("nothing was rotated: the test does not test")
	}
	if runtime.GOOS == "windows" { // no Ctrl-C from here
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return
	}
	_ = cmd.Process.Signal(os.Interrupt)
	if lines.Scan() {
		t.Errorf("and then %q", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
