//go:build unix

package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// role is the variable that makes the test binary play a child.
const role = "CHILD_TEST_ROLE"

func TestMain(m *testing.M) {
	if part := os.Getenv(role); part != "" {
		play(part)
		syscall.Exit(0) // os.Exit would wait a second under the race detector
	}
	os.Exit(m.Run())
}

// play is what the children do.
func play(part string) {
	forever := func() { time.Sleep(time.Minute) }
	switch part {
	case "talk":
		fmt.Fprintf(os.Stderr, "to stderr\r\nno end")
		fmt.Printf("to stdout\n%s\n\nafter\xff\n", strings.Repeat("x", 3*maxLine))
		syscall.Exit(3)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		forever()
	case "polite":
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Println("ready")
		<-asked
		fmt.Println("bye")
	case "parent":
		startGrandchild(nil)
		forever()
	case "parent of a stray":
		startGrandchild(&syscall.SysProcAttr{Setsid: true}) // out of the group
		forever()
	case "flood":
		fmt.Println("ready")
		var both sync.WaitGroup
		for _, out := range []io.Writer{os.Stdout, os.Stderr} {
			both.Go(func() {
				junk := []byte(strings.Repeat("x", 1<<20))
				for range 8 {
					_, _ = out.Write(junk)
				}
				_, _ = out.Write([]byte("\n"))
			})
		}
		both.Wait()
	case "environment":
		for _, entry := range os.Environ() {
			fmt.Println(entry)
		}
	case "owner":
		p, err := Start(context.Background(), Command{Path: os.Args[0], Env: append(Env(), role+"=silent")})
		if err != nil {
			panic(err)
		}
		fmt.Println(p.PID())
		forever()
	default:
		forever()
	}
}

func startGrandchild(attr *syscall.SysProcAttr) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{role + "=deaf"}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = os.Stdout, os.Stderr, attr
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	fmt.Println("grandchild", cmd.Process.Pid)
}

// run starts the test binary in a role and collects its lines.
func run(t *testing.T, ctx context.Context, part string) (p *Process, lines chan string) {
	t.Helper()
	lines = make(chan string, 100)
	p, err := Start(ctx, Command{Path: os.Args[0], Env: append(Env(), role+"="+part), Line: func(stream, line string) {
		select {
		case lines <- stream + ": " + line:
		default: // a flood
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Stop(0) })
	return p, lines
}

// wait takes lines until one ends with what is wanted.
func wait(t *testing.T, lines chan string, prefix string) string {
	t.Helper()
	for {
		select {
		case line := <-lines:
			if rest, ok := strings.CutPrefix(line, "stdout: "+prefix); ok {
				return strings.TrimSpace(rest)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no line %q", prefix)
		}
	}
}

// gone waits until a process is not there any more or nothing but an entry in the table.
func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		dead := err == nil && strings.Contains(string(state), ") Z ")
		if dead || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d is still there", pid)
		}
	}
}

func TestLinesOfBothStreams(t *testing.T) {
	p, lines := run(t, t.Context(), "talk")
	var exit *exec.ExitError
	if err := p.Err(); !errors.As(err, &exit) || exit.ExitCode() != 3 {
		t.Errorf("ended with %v", err)
	}
	close(lines)
	var got []string
	for line := range lines {
		got = append(got, line)
	}
	slices.SortStableFunc(got, func(a, b string) int { return strings.Compare(a[:6], b[:6]) })
	want := []string{"stderr: to stderr", "stderr: no end",
		"stdout: to stdout", "stdout: " + strings.Repeat("x", maxLine), "stdout: ", "stdout: after\uFFFD"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStopAsksFirst(t *testing.T) {
	p, lines := run(t, t.Context(), "polite")
	wait(t, lines, "ready")
	p.Stop(time.Minute)
	if err := p.Err(); err != nil {
		t.Errorf("ended with %v", err)
	}
	wait(t, lines, "bye")
	p.Stop(time.Minute) // again
}

// T2: a child that does not listen is killed after the grace, and Stop returns when it is gone.
func TestStopKills(t *testing.T) {
	p, lines := run(t, t.Context(), "deaf")
	wait(t, lines, "ready")
	began := time.Now()
	var stops sync.WaitGroup
	for range 3 {
		stops.Go(func() { p.Stop(100 * time.Millisecond) })
	}
	stops.Wait()
	if took := time.Since(began); took < 100*time.Millisecond || took > 3*time.Second {
		t.Errorf("took %v", took)
	}
	if err := syscall.Kill(p.PID(), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
}

func TestEndOfContextKills(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, lines := run(t, ctx, "deaf")
	wait(t, lines, "ready")
	cancel()
	<-p.Done()
	if _, err := Start(ctx, Command{Path: os.Args[0]}); !errors.Is(err, context.Canceled) {
		t.Errorf("starting after the end: %v", err)
	}
}

// R07: a grandchild that has the pipe keeps nobody waiting, in the group (where it goes too) and out of it.
func TestGrandchildKeepsThePipe(t *testing.T) {
	for _, part := range []string{"parent", "parent of a stray"} {
		t.Run(part, func(t *testing.T) {
			p, lines := run(t, t.Context(), part)
			pid, err := strconv.Atoi(wait(t, lines, "grandchild"))
			if err != nil {
				t.Fatal(err)
			}
			wait(t, lines, "ready")
			began := time.Now()
			p.Stop(time.Second)
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("took %v", took)
			}
			if part == "parent of a stray" {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			gone(t, pid)
		})
	}
}

// A process that dies by itself takes its group along.
func TestEarlyDeathTakesTheGroup(t *testing.T) {
	p, lines := run(t, t.Context(), "parent")
	pid, err := strconv.Atoi(wait(t, lines, "grandchild"))
	if err != nil {
		t.Fatal(err)
	}
	wait(t, lines, "ready")
	_ = syscall.Kill(p.PID(), syscall.SIGKILL)
	if err := p.Err(); err == nil {
		t.Error("ended without an error")
	}
	gone(t, pid)
}

// A line of 8 MiB without an end on both streams is read to its end and not kept.
func TestFloodIsDrained(t *testing.T) {
	p, lines := run(t, t.Context(), "flood")
	wait(t, lines, "ready")
	if err := p.Err(); err != nil {
		t.Error(err)
	}
	close(lines)
	for line := range lines {
		if len(line) > maxLine+len("stdout: ") {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
}

// A5, T2: nothing of the environment gets through but what every program needs.
func TestEnvironmentIsMinimal(t *testing.T) {
	for _, name := range []string{"TUNNEL_TOKEN", "NO_AUTOUPDATE", "DUFS_AUTH", "A2MCP_TOKEN", "GITHUB_TOKEN"} {
		t.Setenv(name, "leak")
	}
	t.Setenv("CHILD_KEPT", "kept")
	env := Env("CHILD_KEPT", "CHILD_NOT_SET")
	if !slices.Contains(env, "CHILD_KEPT=kept") || !slices.Contains(env, "PATH="+os.Getenv("PATH")) {
		t.Errorf("not there: %q", env)
	}
	p, lines := run(t, t.Context(), "environment")
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	close(lines)
	for line := range lines {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "stdout: "), "=")
		if name != role && !slices.Contains(basic, name) {
			t.Errorf("the child sees %s", line)
		}
	}
	p2, err := Start(t.Context(), Command{Path: "/usr/bin/env", Line: func(_, line string) { t.Errorf("without Env the child sees %s", line) }})
	if err != nil {
		t.Fatal(err)
	}
	<-p2.Done()
}

func TestStartThatCannot(t *testing.T) {
	if _, err := Start(t.Context(), Command{Path: t.TempDir() + "/nothing"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// R09: a file that is open for writing for a moment is waited for.
func TestBusyFile(t *testing.T) {
	path := t.TempDir() + "/busy"
	data, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(path, data, 0o700); err != nil {
		t.Fatal(err)
	}
	open, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(3*busyPause, func() { open.Close() })
	p, err := Start(t.Context(), Command{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Err(); err != nil {
		t.Error(err)
	}
}

// P6: a child does not outlive a sidecar that is killed.
func TestDiesWithItsOwner(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system has no death with the parent")
	}
	owner := exec.Command(os.Args[0])
	owner.Env = []string{role + "=owner"}
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	_ = owner.Process.Kill()
	_ = owner.Wait()
	gone(t, pid)
}
