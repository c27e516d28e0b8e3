package audit

import (
	"os"
	"syscall"
	"unsafe"
)

// renameNeedsClose: an open file cannot be renamed here.
const renameNeedsClose = true

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

// Flags of LockFileEx (fileapi.h).
const (
	failImmediately = 1
	exclusive       = 2
)

// lockRange is one byte far behind any log: locks are mandatory here, and nobody
// may be kept from writing by them.
func lockRange() *syscall.Overlapped { return &syscall.Overlapped{OffsetHigh: 1 << 30} }

// lockFile takes the file's lock, shared with other writers or alone. Alone it
// does not wait: whoever has it may be stopped.
func lockFile(f *os.File, alone bool) error {
	var flags uintptr
	if alone {
		flags = exclusive | failImmediately
	}
	ok, _, err := lockFileEx.Call(f.Fd(), flags, 0, 1, 0, uintptr(unsafe.Pointer(lockRange())))
	if ok == 0 {
		return err
	}
	return nil
}

func unlockFile(f *os.File) {
	_, _, _ = unlockFileEx.Call(f.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(lockRange())))
}
