package hostrpc

import (
	"container/list"
	"errors"
	"io"
	"sync"
)

// ErrQueueFull is what a call ends with that found the queue full: the other end
// has stopped reading. Nothing of the call has left.
var ErrQueueFull = errors.New("the host does not read: the queue of messages to it is full")

// outbox is the queue between everyone who sends and the one goroutine that
// writes. It is bounded in bytes, not in messages.
type outbox struct {
	limit int
	moved func() // see pipeWriter

	mu     sync.Mutex
	wake   *sync.Cond
	queue  *list.List // of *message, none of which the writer has seen
	bytes  int        // of the queue and of what the writer has taken from it
	closed bool
	err    error // what the output broke with
}

func newOutbox(limit int, moved func()) *outbox {
	b := &outbox{limit: limit, moved: moved, queue: list.New()}
	b.wake = sync.NewCond(&b.mu)
	return b
}

// put queues m. A message that is larger than the limit by itself is let in
// when it is alone, so that the limit on lines decides and not this one.
func (b *outbox) put(m *message) error {
	size := m.size()
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return ErrClosed
	case b.bytes > 0 && b.bytes+size > b.limit:
		return ErrQueueFull
	}
	m.place = b.queue.PushBack(m)
	b.bytes += size
	if b.queue.Len() == 1 {
		b.wake.Signal()
	}
	return nil
}

// drop takes back a message that the writer has not seen.
func (b *outbox) drop(m *message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m.place != nil {
		b.removeLocked(m)
		b.bytes -= m.size()
		m.finish()
	}
}

func (b *outbox) removeLocked(m *message) {
	b.queue.Remove(m.place)
	m.place = nil
}

// close lets the writer finish what it is doing and end; what is queued by then
// is still written.
func (b *outbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake.Signal()
}

// run writes until close, or until the first error, which it returns.
func (b *outbox) run(out io.Writer) error {
	w := newPipeWriter(out, b.moved)
	var batch []*message
	for {
		var idle bool
		if batch, idle = b.take(batch[:0]); len(batch) == 0 {
			return b.err
		}
		if idle {
			w.rested()
		}
		var err error
		for _, m := range batch {
			if err == nil {
				err = w.message(m)
			}
		}
		if err == nil {
			err = w.flush()
		}
		b.done(batch, err)
	}
}

// take waits for messages and moves some to batch: small ones up to one write,
// or one large one. What stays in the queue can still be dropped, so a call that
// has ended before the other end began to read never runs. idle means that
// everything had been written; an empty batch that there is nothing more to write.
func (b *outbox) take(batch []*message) (_ []*message, idle bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.queue.Len() == 0 && !b.closed {
		idle = true
		b.wake.Wait()
	}
	for size := 0; b.queue.Len() > 0; {
		m := b.queue.Front().Value.(*message)
		if size += m.size(); size > batchBytes && len(batch) > 0 {
			break
		}
		b.removeLocked(m)
		batch = append(batch, m)
	}
	return batch, idle
}

func (b *outbox) done(batch []*message, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, m := range batch {
		b.bytes -= m.size()
		m.finish()
		batch[i] = nil // it may be large, and the slice is used again
	}
	if err != nil {
		b.err, b.closed = err, true
		for b.queue.Len() > 0 {
			m := b.queue.Front().Value.(*message)
			b.removeLocked(m)
			m.finish()
		}
	}
}
