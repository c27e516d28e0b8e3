package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a2mcp/a2mcp/audit"
)

// How often --follow looks at the log, and how often while something comes: the
// oldest of what is busily written is soon rotated out.
const (
	lookEvery = 100 * time.Millisecond
	lookSoon  = 10 * time.Millisecond
)

// auditCmd shows what the audit log says.
type auditCmd struct {
	agentFolder
	File    string   `help:"The log. Default: a2mcp.log in the agent folder." env:"A2MCP_AUDIT" placeholder:"FILE"`
	Pending bool     `help:"Calls that started and have not ended, with their age."`
	Errors  bool     `help:"Calls that ended with an error. With --pending: either."`
	Since   since    `help:"Calls that started or ended since then: 10m, 2h, 3d, or an RFC 3339 time." placeholder:"TIME"`
	Tool    []string `help:"Calls of this tool; may be repeated." placeholder:"NAME" sep:"none"`
	SID     string   `name:"sid" help:"Calls of this session; the beginning of its id is enough." placeholder:"ID"`
	Follow  bool     `short:"f" help:"Go on with calls as they come, until Ctrl-C."`
	JSON    bool     `name:"json" help:"One JSON object a call: ts, id, sid, tool, state, ms, args."`
}

// Help is the long text of a2mcp audit --help.
func (auditCmd) Help() string {
	return `Calls are shown in the order in which they ended, those that have not ended last. The state is done, error or pending;
a pending call of a host that has gone will not end any more. With --follow a call that takes longer than a second is
shown as pending first, and again when it ends; as JSON only with --pending.

The log keeps no text of more than 120 characters: <len:5000,sha256:1f3a5b7c> stands for one of 5000 characters, whose
UTF-8 has a SHA-256 that begins so. Names that are no plain words are quoted, so that none can pass for what follows it.

What is no call is listed too: xfer is the life of a share, tunnel that of a tunnel, host_llm the switch.`
}

// Run is a2mcp audit.
func (cmd auditCmd) Run() error {
	log, err := cmd.open()
	if err != nil {
		return report(err)
	}
	defer func() { _ = log.Close() }() // it was only read
	ctx, stop := untilSignal()
	defer stop()
	v := &auditView{cmd: cmd, log: log, out: bufio.NewWriter(stdout), width: columns(os.Stdout), early: map[string]bool{}}
	if cmd.Follow {
		err = v.follow(ctx)
	} else {
		err = eachCall(log, v.ended)
	}
	if err = errors.Join(err, v.out.Flush()); err != nil {
		return err
	}
	if n := log.Broken(); n > 0 {
		fmt.Fprintf(os.Stderr, "a2mcp: broken lines skipped: %d (a crash leaves half a record)\n", n)
	}
	if v.rows == 0 && !cmd.JSON && !cmd.Follow {
		fmt.Fprintln(os.Stderr, "a2mcp: no such calls in the log")
	}
	return nil
}

func (cmd auditCmd) open() (*audit.Reader, error) {
	path := cmd.File
	if path == "" {
		dir, err := cmd.path()
		if err != nil {
			return nil, err
		}
		path = auditFile(dir)
	}
	log, err := audit.OpenReader(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, failed(exitUsage, "no audit log at %s; start the host, or give --agent-dir or --file%s", path, cmd.demoLog())
	}
	return log, err
}

// demoLog names the log of the demo, to be put behind the text that there is none
// elsewhere.
func (cmd auditCmd) demoLog() string {
	dir, err := demoFolder()
	path := filepath.Join(dir, "a2mcp.log")
	if _, missing := os.Stat(path); err != nil || missing != nil || cmd.File != "" {
		return ""
	}
	return "; the demo's is --file " + path
}

// wants reports whether a call is one of those asked for.
func (cmd auditCmd) wants(c *audit.Call) bool {
	anyState := !cmd.Pending && !cmd.Errors
	state := anyState || cmd.Pending && c.State == audit.Pending || cmd.Errors && c.State == audit.Failed
	return state && !c.Last.Before(cmd.Since.Time) && strings.HasPrefix(c.SID, cmd.SID) &&
		(len(cmd.Tool) == 0 || slices.Contains(cmd.Tool, c.Tool))
}

// auditView prints calls.
type auditView struct {
	cmd   auditCmd
	log   *audit.Reader
	out   *bufio.Writer
	width int // of the terminal; 0: there is none
	rows  int
	ends  int             // calls that ended, shown or not
	gaps  int             // of the log, those that were told
	early map[string]bool // calls that were shown before they ended
}

// eachCall calls f for every call in the log, those that have not ended last.
func eachCall(log *audit.Reader, f func(*audit.Call) error) error {
	if err := log.Read(f); err != nil {
		return err
	}
	if err := log.Rest(f); err != nil {
		return err
	}
	for _, c := range log.Pending() {
		if err := f(c); err != nil {
			return err
		}
	}
	return nil
}

// follow shows what is in the log and what comes, until ctx ends.
func (v *auditView) follow(ctx context.Context) error {
	for {
		before := v.ends
		if err := v.log.Read(v.ended); err != nil {
			return err
		}
		if err := v.tellGap(); err != nil {
			return err
		}
		if err := v.stillPending(); err != nil {
			return err
		}
		if err := v.out.Flush(); err != nil {
			return err
		}
		pause := lookEvery
		if v.ends > before {
			pause = lookSoon
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
			if v.width > 0 {
				v.width = columns(os.Stdout)
			}
		}
	}
}

func (v *auditView) ended(c *audit.Call) error {
	v.ends++
	delete(v.early, c.ID)
	if err := v.tellGap(); err != nil {
		return err
	}
	return v.show(c)
}

// tellGap says once for each gap that calls may be missing, between those before it
// and those after it.
func (v *auditView) tellGap() error {
	if v.gaps == v.log.Gaps() {
		return nil
	}
	v.gaps = v.log.Gaps()
	if err := v.out.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "a2mcp: calls may be missing here: the log was rotated faster than it could be followed (auditKeep keeps more)")
	return nil
}

// stillPending shows each call that takes long, once.
func (v *auditView) stillPending() error {
	if v.cmd.JSON && !v.cmd.Pending {
		return nil
	}
	for _, c := range v.log.Pending() {
		if v.early[c.ID] || time.Since(c.Time) < slowCall {
			continue
		}
		v.early[c.ID] = true
		if err := v.show(c); err != nil {
			return err
		}
	}
	return nil
}

func (v *auditView) show(c *audit.Call) error {
	if !v.cmd.wants(c) {
		return nil
	}
	v.rows++
	if v.cmd.JSON {
		_, err := v.out.Write(append(c.AppendJSON(nil), '\n'))
		return err
	}
	if v.rows == 1 && v.width > 0 {
		fmt.Fprintln(v.out, auditHead(v.width))
	}
	_, err := fmt.Fprintln(v.out, auditRow(c, v.width, time.Now()))
	return err
}

// since is a time, given as such or as how long ago it was.
type since struct{ time.Time }

// UnmarshalText reads 10m, 2h, 3d, 1d12h or an RFC 3339 time.
func (s *since) UnmarshalText(text []byte) error {
	if t, err := time.Parse(time.RFC3339, string(text)); err == nil {
		s.Time = t
		return nil
	}
	var ago time.Duration
	rest := string(text)
	if days, hours, ok := strings.Cut(rest, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return fmt.Errorf("%q is no time; write 10m, 2h, 3d or an RFC 3339 time", text)
		}
		ago, rest = time.Duration(n)*24*time.Hour, hours
	}
	if rest != "" || ago == 0 {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 {
			return fmt.Errorf("%q is no time; write 10m, 2h, 3d or an RFC 3339 time", text)
		}
		ago += d
	}
	s.Time = time.Now().Add(-ago)
	return nil
}
