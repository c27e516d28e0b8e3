package main

import "os"

// hostPipe returns standard input and output; anonymous pipes of Windows cannot
// be polled.
func hostPipe() (in, out *os.File) { return os.Stdin, os.Stdout }

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
