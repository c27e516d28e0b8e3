package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
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
	JSON      bool   `name:"json" help:"Print one line of JSON with url, token, log and pid first, and nothing else."`
}

// Run is a2mcp demo.
func (cmd demoCmd) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
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
	term := newTerminal(os.Stdout, os.Stdin, cmd.JSON)
	opt := refhost.Options{
		Command: []string{self, "sidecar"}, AgentDir: dir, Home: home, Cwd: cwd, Version: version(),
		TestTools: cmd.TestTools, Notice: term.notice, Called: term.called,
		Stderr: func(line string) { fmt.Fprintln(os.Stderr, line) },
	}
	if cmd.Approve {
		opt.Approve = term.approve
	}
	host := refhost.New(opt)
	ended := make(chan error, 1)
	go func() { ended <- host.Run(ctx) }()

	ready := make(chan error, 1)
	go func() { ready <- cmd.show(ctx, host, term, filepath.Join(dir, "a2mcp.log")) }()
	select {
	case err := <-ended: // no sidecar would stay
		return err
	case err := <-ready:
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
		_, err := fmt.Fprintf(os.Stdout, "%s\n", proto.Encode(struct {
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

// folder makes the demo's folder with the port in its configuration.
func (cmd demoCmd) folder() (string, error) {
	dir := cmd.AgentDir
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding a folder for the demo: %w; give --agent-dir", err)
		}
		dir = filepath.Join(cache, "a2mcp", "demo")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the demo's folder: %w", err)
	}
	return dir, setPort(filepath.Join(dir, "a2mcp.json"), cmd.Port)
}

// setPort writes the port into a configuration that has another one. What else is
// in the file stays; one that is no JSON is left for the sidecar to complain of.
func setPort(path string, port int) error {
	fields := map[string]json.RawMessage{}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("reading the demo's configuration: %w", err)
	case json.Unmarshal(data, &fields) != nil:
		return nil
	}
	wanted := proto.Encode(port)
	if string(fields["port"]) == string(wanted) || fields["port"] == nil && port == 0 {
		return nil
	}
	fields["port"] = wanted
	whole, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the demo's configuration: %w", err)
	}
	temp := path + ".new"
	if err := os.WriteFile(temp, append(whole, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the demo's configuration: %w", err)
	}
	return os.Rename(temp, path)
}

// timeFormat is how the demo tells the time of a call.
const timeFormat = time.TimeOnly
