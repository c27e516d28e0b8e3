package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// interruption is why a context ended: a signal asked for it.
type interruption syscall.Signal

func (i interruption) Error() string { return syscall.Signal(i).String() }

// exitInterrupted is the exit code for signal 0; shells add the number.
const exitInterrupted = 128

// interrupted reports whether a signal ended ctx, and the exit code that says so.
func interrupted(ctx context.Context) (code int, yes bool) {
	var i interruption
	if !errors.As(context.Cause(ctx), &i) {
		return 0, false
	}
	return exitInterrupted + int(i), true
}

// untilSignal is a context that ends with Ctrl-C and the signals that end programs,
// but for those that whoever started this one ignores (nohup). The second signal ends
// the program at once.
func untilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	came := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(came, s)
		}
	}
	go func() {
		select {
		case s := <-came:
			signal.Stop(came)
			number, ok := s.(syscall.Signal)
			if !ok {
				panic(fmt.Sprintf("%T is no signal", s)) // there is no other type
			}
			cancel(interruption(number))
		case <-ctx.Done():
			signal.Stop(came)
		}
	}()
	return ctx, func() { cancel(nil) }
}
