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

// TestAuditFollowsWithGaps: rotations that are faster than a consumer who stands
// still are told, once for each gap, for a program too (L4).
func TestAuditFollowsWithGaps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log, err := audit.Open(path, audit.Options{MaxBytes: 64 << 10, Required: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	call := func(id string) {
		for _, phase := range []audit.Phase{audit.Start, audit.Done} {
			args := []byte(`{"n":"` + strings.Repeat("x", 100) + `"}`)
			if err := log.Write(audit.Record{Time: time.Now(), ID: id, Phase: phase, Tool: "t", Args: args}); err != nil {
				t.Fatal(err)
			}
		}
	}
	call("first")
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, binary(t), "audit", "--follow", "--json", "--file", path)
	told := &lockedText{}
	cmd.Stderr = told
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(out)
	for _, id := range []string{"first", "second"} {
		if id == "second" {
			call(id)
		}
		if !lines.Scan() || !strings.Contains(lines.Text(), `"`+id+`"`) {
			t.Fatalf("%q: %v", lines.Text(), lines.Err())
		}
	}
	if told.String() != "" {
		t.Errorf("told without a gap: %s", told)
	}
	for i := range 4000 { // the pipe is full long before
		call(fmt.Sprint(i))
	}
	call("last")
	seen := 0
	for lines.Scan() && !strings.Contains(lines.Text(), `"last"`) {
		seen++
	}
	if seen >= 4000 {
		t.Error("nothing was missed: the test does not test")
	}
	waitFor(t, func() bool { return told.String() != "" })
	if got := strings.Count(told.String(), "a2mcp: calls may be missing here: "); got == 0 || got > 3 || strings.Count(told.String(), "\n") != got {
		t.Errorf("told %d times:\n%s", got, told)
	}
}

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
