package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/a2mcp/a2mcp/hostrpc/refhost"
	"github.com/a2mcp/a2mcp/proto"
)

// demoCmd runs a small host with its bridge, so that the bridge can be seen
// without an agent.
type demoCmd struct {
	Port      int    `help:"Port to serve on; 0 is any free one." default:"0"`
	AgentDir  string `help:"Folder for configuration and log. Default: one of the demo's own, never the agent's." placeholder:"DIR"`
	Approve   bool   `help:"Ask on this terminal before a tool writes or runs anything."`
	TestTools bool   `help:"Offer the tools that tests of clients want, too."`
	JSON      bool   `name:"json" help:"Print one line of JSON with url, token, log and pid, and nothing else on standard output; questions are on standard error."`
}

// Run is a2mcp demo.
func (cmd demoCmd) Run() error {
	if cmd.Port < 0 || cmd.Port > maxPort {
		return report(failed(exitUsage, "%d is no port; give one from 1 to %d, or 0 for any free one", cmd.Port, maxPort))
	}
	ctx, stop := untilSignal()
	defer stop()
	dir, err := cmd.folder()
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this binary: %w", err)
	}
	home, _ := os.UserHomeDir() // without one ~ stays what it is
	cwd, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the working folder: %w", err)
	}
	log, err := filepath.Abs(auditFile(dir))
	if err != nil {
		return err
	}
	screen := os.Stdout
	if cmd.JSON { // that is for a program then
		screen = os.Stderr
	}
	term := newTerminal(screen, os.Stdin, cmd.JSON, cmd.Approve)
	opt := refhost.Options{
		Command: []string{self, "sidecar"}, AgentDir: dir, Home: home, Cwd: cwd, Version: version(),
		TestTools: cmd.TestTools, Notice: term.notice, Called: term.called,
	}
	if cmd.Approve {
		opt.Approve = term.approve
	}
	host := refhost.New(opt)
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()

	ready := make(chan error, 1)
	go func() { ready <- cmd.show(ctx, host, term, log) }()
	select {
	case err := <-ended: // no sidecar would stay
		return err
	case err := <-ready: // or it said why it does not serve
		if err != nil && ctx.Err() == nil {
			stop()
			return errors.Join(err, <-ended)
		}
	}
	go term.read(ctx, host)
	return <-ended
}

// show prints where the bridge is, once it serves.
func (cmd demoCmd) show(ctx context.Context, host *refhost.Host, term *terminal, log string) error {
	url, err := host.URL(ctx)
	if err != nil {
		return err
	}
	shown, err := host.Command(ctx, "token")
	if err != nil {
		return fmt.Errorf("asking for the token: %w", err)
	}
	if cmd.JSON {
		_, err := fmt.Fprintf(stdout, "%s\n", proto.Encode(struct {
			URL   string `json:"url"`
			Token string `json:"token"`
			Log   string `json:"log"`
			PID   int    `json:"pid"`
		}{url, shown.Text, log, os.Getpid()}))
		return err
	}
	term.welcome(url, shown.Text, log)
	return nil
}

// timeFormat is how the demo tells the time of a call.
const timeFormat = time.TimeOnly
