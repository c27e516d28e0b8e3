package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/a2mcp/a2mcp/sidecar"
)

// endLimit is how long a sidecar may take to end; then it ends anyway (HOST.md).
const endLimit = 5 * time.Second

// sidecarCmd serves a host over stdio.
type sidecarCmd struct{}

// Run is a2mcp sidecar. Standard output carries the protocol and nothing else.
func (sidecarCmd) Run() error {
	in, out := hostPipe()
	os.Stdout = os.Stderr // whoever prints by mistake does not break the protocol
	if isTerminal(in) {
		return startedByHand()
	}
	// The host's end of input is the end signal; a Ctrl-C in the host's terminal and
	// the end of that terminal are the host's business. SIGPIPE would kill the
	// process at its last word to a host that has gone.
	signal.Ignore(os.Interrupt, syscall.SIGHUP, syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, func() { time.AfterFunc(endLimit, func() { os.Exit(0) }) })

	err := sidecar.Run(ctx, sidecar.Options{
		In: in, Out: out, Stderr: os.Stderr, Version: version(), Debug: os.Getenv("A2MCP_LOG") == "debug",
	})
	if errors.Is(err, sidecar.ErrNoHost) {
		return startedByHand()
	}
	return err
}

func startedByHand() error {
	fmt.Fprintln(os.Stderr, "a2mcp sidecar is started by an agent host, which talks to it over standard input.\n"+
		"Try `a2mcp demo` for a host that needs nothing else.")
	return exitCode(2)
}
