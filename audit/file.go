package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"
)

// reopenTries bounds the race with others who rotate or remove the file.
const reopenTries = 10

// rotateRetry is how long a rotation that could not be done is left alone;
// lockTries and lockPause are how long other writers are given to let go first.
const (
	rotateRetry = time.Second
	lockTries   = 200
	lockPause   = 100 * time.Microsecond
)

// file is the open end of the log. One goroutine uses it at a time.
type file struct {
	f         *os.File
	torn      bool      // what was written last may lack its end
	notBefore time.Time // of the next try to rotate
}

func (fl *file) open(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening the audit log: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		_ = f.Chmod(0o600) // an older log that others could read
	}
	fl.f = f
	fl.torn = lastByte(f) != '\n'
	return nil
}

// lastByte is the end of what is in the file, a newline if that is nothing or
// cannot be read.
func lastByte(f *os.File) byte {
	last := [1]byte{'\n'}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 && lockFile(f, true) == nil {
		_, _ = f.ReadAt(last[:], info.Size()-1) // alone with it: nobody is in the middle of a line
		unlockFile(f)
	}
	return last[0]
}

func (fl *file) close() error {
	if fl.f == nil {
		return nil
	}
	err := fl.f.Close()
	fl.f = nil
	return err
}

// append writes lines whole or reports why not.
func (fl *file) append(path string, lines []byte, opt *Options) error {
	for range reopenTries {
		if fl.f == nil {
			if err := fl.open(path); err != nil {
				return err
			}
		}
		lockErr := lockFile(fl.f, false) // a file system without locks: one process is all there is
		info, same := fl.current(path)
		if !same {
			_ = fl.close() // rotated by another process, or removed; closing lets go of the lock
			continue
		}
		size := info.Size()
		if size > 0 && size+int64(len(lines)) > opt.MaxBytes && info.Mode().IsRegular() && time.Now().After(fl.notBefore) {
			unlockFile(fl.f)
			if err := fl.rotate(path, opt.Keep); err != nil {
				fl.notBefore = time.Now().Add(rotateRetry)
				opt.Log.Warn("audit log not rotated", "path", path, "err", err)
			}
			continue
		}
		err := fl.write(lines)
		if lockErr == nil {
			unlockFile(fl.f)
		}
		return err
	}
	return errors.New("the audit log is replaced faster than it can be opened")
}

// current reports whether the path still leads to the open file.
func (fl *file) current(path string) (fs.FileInfo, bool) {
	open, err := fl.f.Stat()
	if err != nil {
		return nil, false
	}
	there, err := os.Stat(path)
	return open, err == nil && os.SameFile(open, there)
}

// write appends lines. A line that was torn by a full disk or a dying process is
// ended first, so that it spoils no other.
func (fl *file) write(lines []byte) error {
	if fl.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := fl.f.Write(lines)
	if err != nil {
		fl.torn = fl.torn || n > 0
		return fmt.Errorf("writing the audit log: %w", err)
	}
	fl.torn = false
	return nil
}

// rotate moves the log to .1, .1 to .2 and so on, the oldest making place. It
// holds the lock alone; where that cannot be had, or a step fails, the log goes
// on beyond its limit and nothing is lost (L4).
func (fl *file) rotate(path string, keep int) error {
	if err := fl.lockAlone(); err != nil {
		return fmt.Errorf("locking the log: %w", err)
	}
	if _, same := fl.current(path); !same {
		return fl.close() // somebody else has just done it
	}
	if renameNeedsClose {
		_ = fl.close()
	}
	for n := keep; n > 1; n-- {
		err := os.Rename(generation(path, n-1), generation(path, n))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			fl.unlock()
			return fmt.Errorf("making place: %w", err)
		}
	}
	if err := os.Rename(path, generation(path, 1)); err != nil {
		fl.unlock()
		return fmt.Errorf("moving the log: %w", err)
	}
	return fl.close() // the next append makes the new one
}

// lockAlone gives other writers a moment to let go of the lock.
func (fl *file) lockAlone() error {
	var err error
	for range lockTries {
		if err = lockFile(fl.f, true); err == nil {
			return nil
		}
		time.Sleep(lockPause)
	}
	return err
}

func (fl *file) unlock() {
	if fl.f != nil {
		unlockFile(fl.f)
	}
}

func generation(path string, n int) string { return path + "." + strconv.Itoa(n) }
