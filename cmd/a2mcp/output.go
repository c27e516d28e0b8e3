package main

import (
	"fmt"
	"os"
	"strings"
)

// output is standard output. All that is printed goes through it: the first error is
// remembered, what follows is not written, and the end of the program tells.
type output struct {
	// process is what os.Stdout was at first. A file that nothing holds is closed, and
	// a sidecar, which turns os.Stdout away, goes on to use the descriptor.
	process *os.File
	err     error
}

var stdout = &output{process: os.Stdout}

// Write writes to whatever os.Stdout is now.
func (o *output) Write(p []byte) (n int, err error) {
	if o.err == nil {
		n, o.err = os.Stdout.Write(p)
	}
	return n, o.err
}

// finish says what could not be printed, and makes that no success.
func finish(code int) int {
	if stdout.err == nil {
		return code
	}
	say("not all of the output could be written: " + stdout.err.Error())
	return max(code, 1)
}

// say prints an error, each line of it fit to be shown (F4).
func say(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(os.Stderr, "a2mcp:", printable(strings.TrimSuffix(line, "\n")))
	}
}
