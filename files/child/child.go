// Package child is a process of ours with one owner: cloudflared, a file server.
//
// # Idea
//
// A Process has both its output streams drained, line by line and bounded, so that a flood costs
// nothing and a full pipe never stops it. It leads a group of its own (a job on Windows) and takes the
// group with it, whichever way it ends. It does not outlive the program that started it: Linux kills it
// with its parent, Windows with the last handle of its job; elsewhere the group has to do.
//
// # Goroutines
//
// One keeps the process: it starts it and waits for it without leaving its thread, because Linux takes
// the end of that thread for the end of the parent. One a stream reads, and two wait beside them. All of
// them end with the process.
//
// # Order of events
//
// Start; lines; the end of the process; what is left of its group is killed; the streams are read to
// their end, for a moment only, as somebody else may hold them open; Done. No line comes after Done.
package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// lastLines is how long the streams of a process that has ended are read on. A grandchild that left the
// group may hold them open for ever (R07).
const lastLines = 500 * time.Millisecond

// A file that was written a moment ago may still be open in a process that is just being forked.
const (
	busyTries = 20
	busyPause = 20 * time.Millisecond
)

// Command says what to run.
type Command struct {
	Path string
	Args []string // without the name of the program
	Env  []string // all of the environment; see Env
	// Line gets each line of both streams, cut at 4 KiB, without its end. stream is "stdout" or
	// "stderr"; the two come from goroutines of their own. It must not block: the process would.
	Line func(stream, line string)
}

// Process is a running child, or one that has ended.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed

	terminate sync.Once

	mu    sync.Mutex
	group group
	gone  bool // the process was waited for: its number may be somebody else's
}

// Start starts a process. It lives until it ends by itself, Stop, or the end of ctx, which kills it.
func Start(ctx context.Context, c Command) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &Process{done: make(chan struct{})}
	started := make(chan error, 1)
	go p.keep(c, started)
	if err := <-started; err != nil {
		return nil, err
	}
	release := context.AfterFunc(ctx, p.kill)
	go func() {
		<-p.done
		release()
	}()
	return p, nil
}

// PID is the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process is gone and its last line was delivered.
func (p *Process) Done() <-chan struct{} { return p.done }

// Alive reports whether the process has not ended yet.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Err says how the process ended, nil for exit code 0. It waits for Done.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Stop asks the group to end, kills it after grace, and returns when the process is gone. It may be
// called more than once and at the same time.
func (p *Process) Stop(grace time.Duration) {
	p.terminate.Do(func() { p.signal(group.terminate) })
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	p.kill()
	<-p.done
}

func (p *Process) kill() { p.signal(group.kill) }

// signal does something to the group of a process that was not waited for yet.
func (p *Process) signal(what func(group)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		what(p.group)
	}
}

// keep starts the process and stays with it to its end.
func (p *Process) keep(c Command, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	streams, err := p.start(c)
	started <- err
	if err != nil {
		return
	}
	err = p.cmd.Wait()
	p.mu.Lock()
	p.gone = true
	p.group.end()
	p.mu.Unlock()
	streams.finish()
	p.err = err
	close(p.done)
}

// start makes the pipes and the process; it tries again while the file is busy.
func (p *Process) start(c Command) (*streams, error) {
	var ours, theirs []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			_ = f.Close()
		}
	}
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(ours, theirs...))
			return nil, fmt.Errorf("making a pipe: %w", err)
		}
		ours, theirs = append(ours, r), append(theirs, w)
	}
	defer closeAll(theirs)
	var err error
	for range busyTries {
		p.cmd = exec.Command(c.Path, c.Args...)
		p.cmd.Env = append([]string{}, c.Env...) // nil would be all of ours
		p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1]
		p.cmd.SysProcAttr = attributes()
		if err = p.cmd.Start(); !errors.Is(err, syscall.ETXTBSY) {
			break
		}
		time.Sleep(busyPause)
	}
	if err == nil {
		if p.group, err = newGroup(p.cmd.Process); err != nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	}
	if err != nil {
		closeAll(ours)
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	return readStreams(ours, c.Line), nil
}

// streams are the reading ends of both pipes.
type streams struct {
	files []*os.File
	ended chan struct{}
}

func readStreams(files []*os.File, line func(stream, line string)) *streams {
	s := &streams{files: files, ended: make(chan struct{})}
	var reading sync.WaitGroup
	for i, name := range []string{"stdout", "stderr"} {
		reading.Go(func() {
			readLines(files[i], func(text string) {
				if line != nil {
					line(name, text)
				}
			})
		})
	}
	go func() {
		reading.Wait()
		close(s.ended)
	}()
	return s
}

// finish returns when nothing is read any more.
func (s *streams) finish() {
	timer := time.NewTimer(lastLines)
	defer timer.Stop()
	select {
	case <-s.ended:
	case <-timer.C:
	}
	for _, f := range s.files {
		_ = f.Close() // ends a read that somebody else's copy of the pipe keeps waiting
	}
	<-s.ended
}
