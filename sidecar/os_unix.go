//go:build unix

package sidecar

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// addressInUse reports that somebody else listens there (P7).
func addressInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// ProcessAlive reports whether a process of that id is there.
func ProcessAlive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

// exposure says that others can read the file, and so the token in it.
func exposure(path string) []string {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return []string{fmt.Sprintf("others on this machine can read it (mode %04o): chmod 600 %s", info.Mode().Perm(), path)}
}
