package files

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"sync"
	"time"
)

// live is one share from its beginning to its end. What stands above mu does not change.
type live struct {
	path     string // as asked for, absolute
	real     string // links resolved
	root     *os.Root
	file     string // name inside root of a shared file, "" where a folder is shared
	readOnly bool
	secret   string // path part of the browser link, "" without one (X10)
	child    Child  // nil is the built-in server

	started time.Time
	ttl     time.Duration
	expires time.Time
	timer   *time.Timer

	ctx     context.Context // done when the share has ended
	cancel  context.CancelFunc
	serving sync.WaitGroup // requests in progress
	own     own
	made    ledger
	placing sync.Mutex // one file is put in its place at a time, so that looking and placing are one
}

// secretMark begins the path part of a browser link; 43 characters follow.
const secretMark = "~"

func newSecret() string {
	// Two texts of 26 letters of base 32 are 260 bits.
	return secretMark + rand.Text() + rand.Text()[:17]
}

// close ends a share that is no longer in its place: cuts what is under way, stops the child, and
// returns when both are gone.
func (l *live) close() {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.cancel()
	if l.child != nil {
		l.child.Stop()
	}
	l.serving.Wait()
	if l.root != nil {
		l.root.Close()
	}
}

func (l *live) port(base string) int {
	if l.child != nil {
		return l.child.Port()
	}
	return portOf(base)
}

// begin makes l the share that is served, in place of the one that was, which it returns. The lock is
// held throughout: nobody sees the moment between two shares (X2), and the records stand in the order
// of the events.
func (s *Share) begin(l *live, sid string, epoch int) (old *live, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != epoch {
		return nil, errStopped
	}
	if old = s.cur; old != nil {
		_ = s.record(closed(old, "replaced"), sid)
	}
	s.cur = nil
	if err := s.record(shared(l), sid); err != nil && s.o.Required() {
		return old, errors.New("audit log not writable")
	}
	s.cur = l
	l.timer = time.AfterFunc(l.ttl, func() { s.expire(l) })
	return old, nil
}

// expire is the end by time. It does nothing where l has left its place already.
func (s *Share) expire(l *live) {
	if !s.take(l) {
		return
	}
	defer s.ending.Done()
	_ = s.record(closed(l, "ttl expired"), "")
	l.close()
}

// take takes l out of its place, true for the one caller that did. That caller must call ending.Done.
func (s *Share) take(l *live) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l == nil || s.cur != l {
		return false
	}
	s.cur = nil
	s.ending.Add(1)
	return true
}

// Close ends the share, if there is one, and a start that is under way; it returns when nothing of
// them is left, with the path that was shared, "" for none. why is what the closing record says, such as
// "bridge stopped" (L7). A Share can be used again afterwards.
func (s *Share) Close(why string) (path string) {
	s.mu.Lock()
	s.epoch++
	if s.starting != nil {
		s.starting()
	}
	s.mu.Unlock()

	s.acting.Lock()
	defer s.acting.Unlock()
	if l := s.live(); s.take(l) {
		path = l.path
		_ = s.record(closed(l, why), "")
		l.close()
		s.ending.Done()
	}
	s.ending.Wait()
	return path
}
