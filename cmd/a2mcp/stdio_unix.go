//go:build unix

package main

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// hostPipe returns standard input and output as the runtime's poller knows them:
// a read that waits costs no thread, and closing the file ends it. Files of
// another kind, which cannot be polled, are returned as they are.
func hostPipe() (in, out *os.File) {
	return pollable(os.Stdin), pollable(os.Stdout)
}

func pollable(f *os.File) *os.File {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return f
	}
	fd := f.Fd()
	if syscall.SetNonblock(int(fd), true) != nil {
		return f
	}
	return os.NewFile(fd, f.Name())
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// columns is the width of a terminal, 0 of what is none.
func columns(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return atLeastSome(int(size.Col))
}
