package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
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
//
// The log is opened first. A rotation moves files towards higher numbers, so one
// that happens meanwhile can show a file twice, never hide one; and it leaves one
// number without a file while it goes on.
func (r *Reader) open() error {
	var found []*source
	read := map[string]int64{}
	for n, missing := 0, 0; missing < 2; n++ {
		name := r.path
		if n > 0 {
			name = generation(r.path, n)
		}
		s, err := openSource(name)
		if errors.Is(err, fs.ErrNotExist) {
			missing++
			continue
		}
		if err != nil {
			closeAll(found)
			return err
		}
		missing = 0
		if s.head != nil {
			if _, twice := read[string(s.head)]; twice {
				s.f.Close()
				continue
			}
			read[string(s.head)] = r.read[string(s.head)]
			if s.at, err = s.f.Seek(r.read[string(s.head)], io.SeekStart); err != nil {
				closeAll(append(found, s))
				return fmt.Errorf("reading %s: %w", name, err)
			}
		}
		found = append(found, s)
	}
	if len(found) == 0 {
		return &fs.PathError{Op: "open", Path: r.path, Err: fs.ErrNotExist}
	}
	slices.Reverse(found)
	r.sources, r.read = found, read
	return nil
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
	return old.f.Close()
}

func closeAll(sources []*source) {
	for _, s := range sources {
		s.f.Close()
	}
}
