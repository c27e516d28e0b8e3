package hostrpc

import (
	"bytes"
	"io"
)

// batchBytes is the size of the buffers on both ways: how much is read or
// written at once, as much as a pipe takes by default.
const batchBytes = 64 << 10

// emptyReads is how often a reader may return neither bytes nor an error.
const emptyReads = 100

// lineReader cuts a stream into lines. A line is copied once: out of the buffer,
// or, if it is longer than that, out of all the buffers that it has filled.
type lineReader struct {
	r     io.Reader
	max   int    // length of a line without its newline
	alive func() // called when bytes have come

	buf        []byte
	start, end int   // buf[start:end] has been read and not been returned
	err        error // what the last read ended with
}

func newLineReader(r io.Reader, limit int, alive func()) *lineReader {
	return &lineReader{r: r, max: limit, alive: alive, buf: make([]byte, batchBytes)}
}

// next returns the next line without its newline. The line is the caller's. whole
// is false for a line over the limit, of which the first bytes are returned. What
// comes before the end of the stream without a newline is no line.
func (l *lineReader) next() (line []byte, whole bool, err error) {
	var full [][]byte // buffers that hold nothing but the begin of this line
	size, from := 0, l.start
	for {
		if i := bytes.IndexByte(l.buf[from:l.end], '\n'); i >= 0 {
			last := l.buf[l.start : from+i]
			l.start = from + i + 1
			if size += len(last); size <= l.max {
				return join(full, last, size), true, nil
			}
			if full == nil {
				return bytes.Clone(last), false, nil
			}
			return full[0], false, nil
		}
		switch {
		case l.start > 0:
			l.end = copy(l.buf, l.buf[l.start:l.end])
			l.start = 0
		case l.end == len(l.buf):
			size += l.end
			if full == nil || size <= l.max {
				full = append(full, l.buf)
				l.buf = make([]byte, batchBytes)
			} else {
				full = [][]byte{full[0]} // nobody will see the rest
			}
			l.end = 0
		}
		from = l.end
		if err := l.fill(); err != nil {
			return nil, false, err
		}
	}
}

// fill reads at least one byte.
func (l *lineReader) fill() error {
	for range emptyReads {
		if l.err != nil {
			return l.err
		}
		n, err := l.r.Read(l.buf[l.end:])
		l.end += n
		l.err = err
		if n > 0 {
			l.alive()
			return nil
		}
	}
	return io.ErrNoProgress
}

// join empties full as it goes, so that what has been copied can be freed.
func join(full [][]byte, last []byte, size int) []byte {
	line := make([]byte, 0, size)
	for i, part := range full {
		line = append(line, part...)
		full[i] = nil
	}
	return append(line, last...)
}
