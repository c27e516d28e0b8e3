package hostrpc

import (
	"bytes"
	"io"
)

// pipeBytes is more than what an operating system buffers of a pipe unless told
// to: 64 KiB, 208 KiB of a socket pair, at most 1 MiB of a pipe on Linux.
const pipeBytes = 1 << 20

// pipeWriter gathers small pieces into one write and sends large ones from where
// they lie.
//
// What was written has not been read: a frozen peer takes as much as the pipe
// holds. Only what is written beyond that without a pause shows that somebody
// reads at the other end, and only then moved is called (M13).
type pipeWriter struct {
	out   io.Writer
	moved func()
	buf   []byte
	burst int // bytes written since the queue was empty the last time
}

func newPipeWriter(out io.Writer, moved func()) *pipeWriter {
	return &pipeWriter{out: out, moved: moved, buf: make([]byte, 0, batchBytes)}
}

// rested says that there was nothing to write for a while.
func (w *pipeWriter) rested() { w.burst = 0 }

func (w *pipeWriter) message(m *message) error {
	if err := w.add(m.head); err != nil {
		return err
	}
	for _, p := range m.foreign {
		if err := w.addForeign(p); err != nil {
			return err
		}
	}
	return w.add([]byte(m.tail))
}

// add gathers p as it is.
func (w *pipeWriter) add(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), cap(w.buf)-len(w.buf))
		w.buf = append(w.buf, p[:n]...)
		p = p[n:]
		if len(w.buf) == cap(w.buf) {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// addForeign is add for JSON of somebody else. It may be laid out over several
// lines, which would end ours and let its author write lines of his own: a line
// break between two tokens leaves as a blank. Within a string there is none.
func (w *pipeWriter) addForeign(p []byte) error {
	for len(p) > 0 {
		n := min(len(p), cap(w.buf)-len(w.buf))
		if part := p[:n]; n == batchBytes && !hasBreak(part) {
			if err := w.write(part); err != nil {
				return err
			}
			p = p[n:]
			continue
		}
		w.buf = append(w.buf, p[:n]...)
		blank(w.buf[len(w.buf)-n:])
		p = p[n:]
		if len(w.buf) == cap(w.buf) {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *pipeWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	err := w.write(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *pipeWriter) write(p []byte) error {
	n, err := w.out.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if w.burst += n; w.burst > pipeBytes {
		w.moved()
	}
	return err
}

func hasBreak(p []byte) bool {
	return bytes.IndexByte(p, '\n') >= 0 || bytes.IndexByte(p, '\r') >= 0
}

// blank replaces line breaks; a reader may take a carriage return for one too.
func blank(p []byte) {
	if !hasBreak(p) {
		return
	}
	for i, c := range p {
		if c == '\n' || c == '\r' {
			p[i] = ' '
		}
	}
}
