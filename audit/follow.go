package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// source is a file of the log that is being read. It is known by its head, not by
// its name, which a rotation changes, nor by its inode, which the next log may
// get when this one is rotated out.
type source struct {
	f    *os.File
	head []byte
	at   int64  // how far it has been read
	part []byte // the beginning of a line that has no end yet
}

// maxHead is enough of a first line for the id and phase of its record.
const maxHead = 256

// readHead is the beginning of the first line, which no other log has. It is nil
// while the line has no end, and for what cannot be read twice.
func (s *source) readHead() []byte {
	head := make([]byte, maxHead)
	n, _ := s.f.ReadAt(head, 0)
	if end := bytes.IndexByte(head[:n], '\n'); end >= 0 {
		return head[:end]
	}
	if n == maxHead {
		return head
	}
	return nil
}

// rewindIfReplaced goes back to the beginning of a file whose content is another
// than before: it was emptied, and may have grown past where it was read to.
func (s *source) rewindIfReplaced() error {
	if s.at == 0 {
		return nil
	}
	info, err := s.f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	if info.Size() >= s.at && (s.head == nil || bytes.Equal(s.head, s.readHead())) {
		return nil
	}
	s.at, s.head, s.part = 0, nil, nil
	_, err = s.f.Seek(0, io.SeekStart)
	return err
}

// open opens the log and its generations, oldest first, each where it was left.
// It shares the log's lock meanwhile, as a writer does: no rotation is going on,
// but one that died halfway may have left one number without a file (L4).
func (r *Reader) open() error {
	log, err := openLocked(r.path)
	var found []*source
	if log != nil {
		defer unlockFile(log.f)
		found = append(found, log)
	}
	missing := 1 - len(found)
	for n := 1; missing < 2 && (err == nil || errors.Is(err, fs.ErrNotExist)); n++ {
		var s *source
		switch s, err = openSource(generation(r.path, n)); {
		case errors.Is(err, fs.ErrNotExist):
			missing++
		case err == nil:
			missing = 0
			found = append(found, s)
		}
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) && len(found) > 0 {
		slices.Reverse(found)
		err = r.goOn(found)
	}
	if err != nil {
		closeAll(found)
	}
	return err
}

// goOn makes each of the sources go on where it was left.
func (r *Reader) goOn(found []*source) error {
	read := map[string]int64{}
	for _, s := range found {
		if s.head == nil {
			continue // there is nothing in it, or it cannot be read twice
		}
		read[string(s.head)] = r.read[string(s.head)]
		var err error
		if s.at, err = s.f.Seek(r.read[string(s.head)], io.SeekStart); err != nil {
			return fmt.Errorf("reading %s: %w", s.f.Name(), err)
		}
	}
	r.sources, r.read = found, read
	return nil
}

// openLocked opens the log and shares its lock; where there are no locks it is
// opened all the same. A log that is not there gets a moment: after a rotation
// the next append makes it.
func openLocked(path string) (*source, error) {
	for tries := 1; ; tries++ {
		s, err := openSource(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && tries < lockTries:
			time.Sleep(lockPause)
		case err != nil:
			return nil, err
		case lockFile(s.f, false) != nil:
			return s, nil
		default:
			if same, err := s.isAt(path); same && err == nil {
				return s, nil
			}
			s.f.Close() // rotated while the lock was waited for
		}
	}
}

func openSource(name string) (*source, error) {
	f, err := openToRead(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s := &source{f: f}
	s.head = s.readHead()
	return s, nil
}

// reopen goes on where the path leads now, after what is left in the file that
// was read so far, be that still there under another name or not.
func (r *Reader) reopen(each func(*Call) error) error {
	old := r.sources[0]
	if err := r.drain(old, each); err != nil {
		return err
	}
	if err := r.Rest(each); err != nil {
		return err
	}
	switch err := r.open(); {
	case errors.Is(err, fs.ErrNotExist): // removed this moment; the next log is waited for
		return nil
	case err != nil:
		return fmt.Errorf("opening the audit log: %w", err)
	}
	if !slices.ContainsFunc(r.sources, old.isIn) {
		r.gaps++
	}
	return old.f.Close()
}

// isIn reports whether another source is the same file, or has its content. The
// inode is nobody else's while this one is open.
func (s *source) isIn(other *source) bool {
	if s.head != nil && bytes.Equal(s.head, other.head) {
		return true
	}
	a, err := s.f.Stat()
	b, otherErr := other.f.Stat()
	return err == nil && otherErr == nil && os.SameFile(a, b)
}

func closeAll(sources []*source) {
	for _, s := range sources {
		s.f.Close()
	}
}
