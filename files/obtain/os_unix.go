//go:build unix

package obtain

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// flushMode is how a file is opened to be flushed; open for writing it could not be run meanwhile.
const flushMode = os.O_RDONLY

// putNew gives temp the name path unless something has it. A link never replaces anything; where the
// file system knows no links, a look has to do.
func putNew(temp, path string) error {
	err := os.Link(temp, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return &os.PathError{Op: "installing", Path: path, Err: fs.ErrExist}
	}
	return os.Rename(temp, path)
}

// tryLock takes the file's lock until the file is closed; false means that another has it.
func tryLock(file *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return err == nil, err
		}
	}
}
