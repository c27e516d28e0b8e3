//go:build unix

package main

import (
	"os"
	"syscall"
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
