package obtain

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// flushMode is how a file is opened to be flushed; Windows wants it open for writing.
const flushMode = os.O_RDWR

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// Flags and an error of LockFileEx (fileapi.h, winerror.h).
const (
	failImmediately = 1
	exclusive       = 2
	errLocked       = syscall.Errno(33) // ERROR_LOCK_VIOLATION
)

// putNew gives temp the name path unless something has it.
func putNew(temp, path string) error {
	from, err := syscall.UTF16PtrFromString(temp)
	if err != nil {
		return err
	}
	to, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	if err := syscall.MoveFile(from, to); err != nil { // does not replace
		return &os.LinkError{Op: "move", Old: temp, New: path, Err: err}
	}
	return nil
}

// tryLock takes the file's lock until the file is closed; false means that another has it.
func tryLock(file *os.File) (bool, error) {
	ok, _, err := lockFileEx.Call(file.Fd(), failImmediately|exclusive, 0, 1, 0, uintptr(unsafe.Pointer(new(syscall.Overlapped))))
	switch {
	case ok != 0:
		return true, nil
	case errors.Is(err, errLocked), errors.Is(err, syscall.ERROR_IO_PENDING):
		return false, nil
	}
	return false, err
}
