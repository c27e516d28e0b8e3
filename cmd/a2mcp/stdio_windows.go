package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// hostPipe returns standard input and output; anonymous pipes of Windows cannot
// be polled.
func hostPipe() (in, out *os.File) { return os.Stdin, os.Stdout }

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// columns is the width of a terminal, 0 of what is none.
func columns(f *os.File) int {
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info); err != nil {
		return 0
	}
	return atLeastSome(int(info.Window.Right-info.Window.Left) + 1)
}
