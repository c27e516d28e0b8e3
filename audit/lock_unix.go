//go:build unix

package audit

import (
	"errors"
	"os"
	"syscall"
)

// renameNeedsClose: an open file can be renamed here.
const renameNeedsClose = false

// lockFile takes the file's lock, shared with other writers or alone. Alone it
// does not wait: whoever has it may be stopped.
func lockFile(f *os.File, alone bool) error {
	how := syscall.LOCK_SH
	if alone {
		how = syscall.LOCK_EX | syscall.LOCK_NB
	}
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func unlockFile(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
