package hostrpc

import (
	"errors"
	"io"
	"sync"
)

// ErrQueueFull is what a call ends with that found the queue full: the other end
// has stopped reading. Nothing of the call has left.
var ErrQueueFull = errors.New("the host does not read: the queue of messages to it is full")

var errTooLong = errors.New("the message is longer than a line to the host may be")

// batchBytes is how much the writer gathers into one write. A piece of at least
// that size is written by itself, from where it lies.
const batchBytes = 64 << 10

// message is one line to be written: pieces put together as they are.
type message struct {
	params  [][]byte      // foreign bytes, never copied
	head    []byte        // what comes before params
	tail    []byte        // what comes after, newline included
	written chan struct{} // closed when it has left or never will; may be nil
	size    int
}

func (m *message) finish() {
	if m.written != nil {
		close(m.written)
	}
}

// outbox is the queue between everyone who sends and the one goroutine that
// writes. It is bounded in bytes, not in messages.
type outbox struct {
	limit int
	moved func() // called when a large piece has moved on (M13)

	mu     sync.Mutex
	wake   *sync.Cond
	queue  []*message
	bytes  int
	closed bool
	err    error
}

func newOutbox(limit int, moved func()) *outbox {
	b := &outbox{limit: limit, moved: moved}
	b.wake = sync.NewCond(&b.mu)
	return b
}

// put queues m. A message that is larger than the limit by itself is let in
// when it is alone, so that the limit on lines decides and not this one.
func (b *outbox) put(m *message) error {
	m.size = len(m.head) + len(m.tail)
	for _, p := range m.params {
		m.size += len(p)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return ErrClosed
	case b.bytes > 0 && b.bytes+m.size > b.limit:
		return ErrQueueFull
	}
	b.queue = append(b.queue, m)
	b.bytes += m.size
	if len(b.queue) == 1 {
		b.wake.Signal()
	}
	return nil
}

// drop takes back a message that has not been picked up by the writer.
func (b *outbox) drop(m *message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, q := range b.queue {
		if q == m {
			b.queue = append(b.queue[:i], b.queue[i+1:]...)
			b.bytes -= m.size
			m.finish()
			return
		}
	}
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
func (b *outbox) run(w io.Writer) error {
	var batch []*message
	buf := make([]byte, 0, batchBytes)
	for {
		var ok bool
		if batch, ok = b.take(batch); !ok {
			return b.err
		}
		var err error
		for _, m := range batch {
			if err == nil {
				buf, err = b.write(w, buf, m)
			}
		}
		if err == nil && len(buf) > 0 {
			_, err = w.Write(buf)
			buf = buf[:0]
		}
		b.done(batch, err)
	}
}

// take waits for messages and returns all there are.
func (b *outbox) take(spare []*message) (batch []*message, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) == 0 && !b.closed {
		b.wake.Wait()
	}
	if len(b.queue) == 0 || b.err != nil {
		return nil, false
	}
	batch, b.queue = b.queue, spare[:0]
	return batch, true
}

func (b *outbox) done(batch []*message, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, m := range batch {
		b.bytes -= m.size
		m.finish()
		batch[i] = nil
	}
	if err != nil {
		b.err, b.closed = err, true
		for _, m := range b.queue {
			m.finish()
		}
		b.queue = nil
	}
}

// write gathers small pieces in buf and sends large ones as they are.
func (b *outbox) write(w io.Writer, buf []byte, m *message) ([]byte, error) {
	put := func(p []byte) error {
		if len(buf)+len(p) <= cap(buf) {
			buf = append(buf, p...)
			return nil
		}
		if len(buf) > 0 {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
		for len(p) >= batchBytes {
			n, err := w.Write(p[:batchBytes])
			if err != nil {
				return err
			}
			b.moved()
			p = p[n:]
		}
		buf = append(buf, p...)
		return nil
	}
	if err := put(m.head); err != nil {
		return buf, err
	}
	for _, p := range m.params {
		if err := put(p); err != nil {
			return buf, err
		}
	}
	return buf, put(m.tail)
}
