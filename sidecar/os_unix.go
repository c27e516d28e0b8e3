//go:build unix

package sidecar

import (
	"errors"
	"syscall"
)

// addressInUse reports that somebody else listens there (P7).
func addressInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// ProcessAlive reports whether a process of that id is there.
func ProcessAlive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
