package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// maxLine is more than any record has (L3); a longer line is none.
const maxLine = 1 << 20

// Reader reads a log and what was rotated out of it, oldest first, and joins the
// records of each call. What it keeps grows with the calls that have no end, not
// with the log. It starts no goroutine and shares the log's lock only while it opens
// files. One goroutine uses it at a time.
type Reader struct {
	path    string
	sources []*source        // the last is the one that grows
	read    map[string]int64 // by head: how far a file has been read, under any name
	pending map[string]*Call
	started int
	broken  int
	gaps    int
	buf     []byte
}

// OpenReader opens the log at path with its generations. With none of them there
// the error wraps fs.ErrNotExist.
func OpenReader(path string) (*Reader, error) {
	r := &Reader{path: path, pending: map[string]*Call{}, buf: make([]byte, 64<<10)}
	if err := r.open(); err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	return r, nil
}

// Close closes the files.
func (r *Reader) Close() error {
	var errs []error
	for _, s := range r.sources {
		errs = append(errs, s.f.Close())
	}
	r.sources = nil
	return errors.Join(errs...)
}

// Read calls each for every call that has ended since the last Read, until the
// end of the log is reached. Rotations in between double nothing, and lose nothing
// while the file that was being read is still the log or one of its generations;
// Gaps counts where it was not.
func (r *Reader) Read(each func(*Call) error) error {
	for {
		for len(r.sources) > 1 {
			if err := r.finish(each); err != nil {
				return err
			}
		}
		if err := r.drain(r.sources[0], each); err != nil {
			return err
		}
		if same, err := r.sources[0].isAt(r.path); same || err != nil {
			return nil // one that is gone may be about to get a successor; till then this is the newest
		}
		// It is the log no longer, and whoever wrote to it has let go (L4).
		if err := r.reopen(each); err != nil {
			return err
		}
	}
}

// Rest reads what stands behind the last newline, for want of a writer who would
// end the line.
func (r *Reader) Rest(each func(*Call) error) error {
	s := r.sources[len(r.sources)-1]
	rest := s.part
	s.part = nil
	return r.add(rest, each)
}

// Pending are the calls that started and have not ended, in the order of their
// starts.
func (r *Reader) Pending() []*Call {
	calls := make([]*Call, 0, len(r.pending))
	for _, c := range r.pending {
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(a, b *Call) int { return a.order - b.order })
	return calls
}

// Broken counts the lines that are no records, such as a crash leaves.
func (r *Reader) Broken() int { return r.broken }

// Gaps counts how often the file that was being read was neither the log nor one of
// its generations any more when the next look was taken. Its own end was read, but
// what came after it may have been rotated out, or somebody removed it. The count
// is up before the first call behind the gap is handed out.
func (r *Reader) Gaps() int { return r.gaps }

// finish reads the oldest source to its end and closes it.
func (r *Reader) finish(each func(*Call) error) error {
	s := r.sources[0]
	if err := r.drain(s, each); err != nil {
		return err
	}
	if err := r.add(s.part, each); err != nil {
		return err
	}
	r.sources = r.sources[1:]
	return s.f.Close()
}

// drain reads a source to its end.
func (r *Reader) drain(s *source, each func(*Call) error) error {
	if err := s.rewindIfReplaced(); err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	for {
		n, err := s.f.Read(r.buf)
		s.at += int64(n)
		if err := r.split(s, r.buf[:n], each); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			if s.head == nil {
				s.head = s.readHead()
			}
			if s.head != nil {
				r.read[string(s.head)] = s.at
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the audit log: %w", err)
		}
	}
}

// split takes what has been read and adds the lines that are whole.
func (r *Reader) split(s *source, data []byte, each func(*Call) error) error {
	for len(data) > 0 {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			if s.part = append(s.part, data...); len(s.part) > maxLine {
				s.part = s.part[:maxLine] // no record any more, whatever comes
			}
			return nil
		}
		text := data[:end]
		if len(s.part) > 0 {
			text = append(s.part, text...)
		}
		s.part = s.part[:0]
		if err := r.add(text, each); err != nil {
			return err
		}
		data = data[end+1:]
	}
	return nil
}

// add takes a line.
func (r *Reader) add(text []byte, each func(*Call) error) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil // it ended a line that had no end
	}
	if len(text) >= maxLine {
		r.broken++
		return nil
	}
	phase, c, ok := parse(text)
	switch {
	case !ok:
		r.broken++
	case phase == Start:
		r.started++
		c.order = r.started
		r.pending[c.ID] = c
	default:
		c.begin(r.pending[c.ID])
		delete(r.pending, c.ID)
		return each(c)
	}
	return nil
}

// isAt reports whether the path leads to the source.
func (s *source) isAt(path string) (bool, error) {
	there, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	open, err := s.f.Stat()
	return err == nil && os.SameFile(open, there), err
}
