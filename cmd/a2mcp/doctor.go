package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/a2mcp/a2mcp/audit"
	"github.com/a2mcp/a2mcp/proto"
	"github.com/a2mcp/a2mcp/sidecar"
)

// doctorCmd proves the chain from the host to a call.
type doctorCmd struct {
	target
	Timeout limit `help:"How long a stage may take, in seconds or with a unit." default:"15s"`
}

// doctor is one examination. A stage returns what it found, or an error whose
// text ends with the way out; what the stages before it found is here.
type doctor struct {
	doctorCmd
	dir    string // agent folder
	here   bool   // a bridge is running with it
	other  bool   // --url leads to another bridge
	client *client
}

// errNotHere marks a stage that has nothing to examine, which is no failure.
type errNotHere string

func (e errNotHere) Error() string { return string(e) }

// Help is the long text of a2mcp doctor --help.
func (doctorCmd) Help() string {
	return `Examines the chain link by link and stops at the first that is broken. It calls a tool that does not exist, so
nothing runs and nobody is asked, and shares an empty folder for a moment if nothing is shared. Exit codes: 0 all is
well, 1 something is broken and how to mend it was said, 130 interrupted with Ctrl-C; other signals: 128 + their number.`
}

// Run is a2mcp doctor.
func (cmd doctorCmd) Run() error {
	dir, err := cmd.path()
	if err != nil {
		return report(err)
	}
	ctx, stop := untilSignal()
	defer stop()
	running := runningBridges(dir)
	d := &doctor{doctorCmd: cmd, dir: dir, here: len(running) > 0}
	d.other = cmd.URL != "" && !slices.ContainsFunc(running, func(b bridge) bool { return sameOrigin(b.URL, cmd.URL) })
	defer func() {
		if d.client != nil {
			d.client.end()
		}
	}()
	return d.examine(ctx)
}

// examine goes through the stages until one fails or ctx ends.
func (d *doctor) examine(whole context.Context) error {
	for _, stage := range []struct {
		name string
		run  func(context.Context) (string, error)
	}{
		{"host", d.host},
		{"extension", d.extension},
		{"configuration", d.configuration},
		{"port", d.port},
		{"token", d.tokenAndSession},
		{"catalogue", d.catalogue},
		{"call", d.call},
		{"audit", d.audit},
		{"share", d.share},
		{"tunnel", d.tunnel},
	} {
		ctx, done := d.Timeout.context(whole)
		found, err := stage.run(ctx)
		done()
		if code, yes := interrupted(whole); yes {
			return report(failed(code, "interrupted"))
		}
		var notHere errNotHere
		switch {
		case errors.As(err, &notHere):
			fmt.Fprintf(stdout, "-     %-14s %s\n", stage.name, printable(err.Error()))
		case err != nil:
			fmt.Fprintf(stdout, "FAIL  %-14s %s\n", stage.name, printable(err.Error()))
			return exitCode(1)
		default:
			fmt.Fprintf(stdout, "ok    %-14s %s\n", stage.name, printable(found))
		}
	}
	return nil
}

func (d *doctor) host(ctx context.Context) (string, error) {
	path, err := exec.LookPath("omp")
	if err != nil {
		return "", errNotHere("omp is not on the PATH; a host that is started in another way may still be here")
	}
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	switch {
	case ctx.Err() != nil:
		return "", errNotHere(fmt.Sprintf("%s --version did not answer within %s; a busy machine may need a longer --timeout", path, time.Duration(d.Timeout)))
	case err != nil:
		return "", fmt.Errorf("%s --version: %w; mend the installation of omp first", path, err)
	}
	return strings.TrimSpace(string(out)) + " at " + path, nil
}

// notOfIt is what stages say that examine files of the agent folder where the bridge
// is not known to be one of it.
func (d *doctor) notOfIt() error {
	return errNotHere("the bridge at " + d.URL + " is none that is running with the agent folder " + d.dir)
}

func (d *doctor) extension(context.Context) (string, error) {
	dir := filepath.Join(d.dir, "extensions", "a2mcp")
	_, err := os.Stat(dir)
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case d.other:
		return "", d.notOfIt()
	case missing && d.here:
		return "", errNotHere("nothing in " + dir + ", but a bridge is running: it was linked as a plugin")
	case missing:
		return "", fmt.Errorf("nothing in %s; run a2mcp install and start omp again", dir)
	}
	wanted, err := wantedFiles()
	if err != nil {
		return "", err
	}
	for name, data := range wanted {
		have, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(have, data) {
			return "", fmt.Errorf("%s is not that of this a2mcp (%s); run a2mcp install and start omp again", filepath.Join(dir, name), version())
		}
	}
	return dir, nil
}

func (d *doctor) configuration(context.Context) (string, error) {
	if d.other {
		return "", d.notOfIt()
	}
	path := configFile(d.dir)
	problems, warnings, err := sidecar.CheckConfig(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%s is not there yet; the host makes it when it starts", path)
	case err != nil:
		return "", err
	case len(problems) > 0:
		return "", fmt.Errorf("%s: %s", path, strings.Join(problems, "; "))
	}
	return strings.Join(append([]string{path}, warnings...), "; "), nil
}

// port asks for nothing that needs the token: whatever the answer is, it is one.
func (d *doctor) port(ctx context.Context) (string, error) {
	c, err := d.connect()
	if err != nil {
		return "", fmt.Errorf("%w; start omp and look at `/a2mcp` in it", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return "", fmt.Errorf("nothing answers at %s: %w; start omp and look at `/a2mcp` in it", c.url, errors.Unwrap(err))
	}
	resp.Body.Close()
	d.client = c
	return c.url + " answers", nil
}

func (d *doctor) tokenAndSession(ctx context.Context) (string, error) {
	if err := d.client.initialize(ctx); err != nil {
		return "", err
	}
	return "accepted; session " + d.client.session, nil
}

func (d *doctor) catalogue(ctx context.Context) (string, error) {
	raw, err := d.client.request(ctx, proto.MethodToolsList, nil)
	if err != nil {
		return "", fmt.Errorf("%w; the host does not answer: see `/a2mcp` in it", err)
	}
	names, err := toolNames(raw)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d tools: %s", len(names), shorten(strings.Join(names, " "), 80)), nil
}

// probe is the name of a tool that no host has: a call of it goes the whole way,
// and nothing runs.
const probe = "a2mcp_doctor"

func (d *doctor) call(ctx context.Context) (string, error) {
	began := time.Now()
	text, isError, err := d.callTool(ctx, probe, `{}`)
	switch {
	case err != nil:
		return "", err
	case !isError || !strings.Contains(text, "not exposed"):
		return "", fmt.Errorf("a call of a tool that is not there was answered %q; see `/a2mcp` in the host", shorten(text, 80))
	}
	return fmt.Sprintf("answered by the host in %s", time.Since(began).Round(100*time.Microsecond)), nil
}

func (d *doctor) callTool(ctx context.Context, name, arguments string) (text string, isError bool, err error) {
	raw, err := d.client.request(ctx, proto.MethodToolsCall, fmt.Appendf(nil, `{"name":%s,"arguments":%s}`, proto.Encode(name), arguments))
	if err != nil {
		return "", false, err
	}
	var res struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(raw, &res); err != nil || len(res.Content) == 0 {
		return "", false, failed(exitProtocol, "%s was answered without a text", name)
	}
	return res.Content[0].Text, res.IsError, nil
}

// audit looks for the two records of the call above (L1).
func (d *doctor) audit(context.Context) (string, error) {
	if d.other {
		return "", d.notOfIt()
	}
	path := auditFile(d.dir)
	log, err := audit.OpenReader(path)
	if err != nil {
		return "", fmt.Errorf("%w; `/a2mcp` in the host tells where the log is", err)
	}
	defer func() { _ = log.Close() }() // it was only read
	whole := false
	err = log.Read(func(c *audit.Call) error {
		whole = whole || c.Tool == probe && c.SID == d.client.session && !c.Lone
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case !whole:
		return "", fmt.Errorf("the call is not in %s; `/a2mcp` in the host counts records that were lost and says why", path)
	}
	return "both records are in " + path, nil
}

// share fetches a file over /xfer/, unless that would end somebody's share (X2).
func (d *doctor) share(ctx context.Context) (string, error) {
	text, _, err := d.callTool(ctx, "xfer_status", `{}`)
	if err != nil {
		return "", err
	}
	var status struct{ Serving bool }
	if json.Unmarshal([]byte(text), &status) == nil && status.Serving {
		return "", errNotHere("something is shared already; left alone")
	}
	dir, err := os.MkdirTemp("", "a2mcp-doctor-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	text, isError, err := d.callTool(ctx, "xfer_share", fmt.Sprintf(`{"path":%s,"ttlSeconds":60,"readOnly":true}`, proto.Encode(dir)))
	if isError {
		return "", errNotHere(text)
	}
	defer d.unshare() // also where no answer came
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.client.url, http.NoBody)
	if err != nil {
		return "", err
	}
	req.URL = req.URL.ResolveReference(&url.URL{Path: "/xfer/", RawQuery: "json"}) // the bridge may have any path (H1)
	d.client.headers(req)
	resp, err := d.client.http.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("a shared folder was answered with %s; see the host's log", resp.Status)
	}
	return "a folder was shared, listed and closed", nil
}

// unshare ends the doctor's share, after a signal too. If it cannot, the share's time
// to live does.
func (d *doctor) unshare() {
	ctx, done := context.WithTimeout(context.Background(), 2*time.Second)
	defer done()
	_, _, _ = d.callTool(ctx, "xfer_stop", `{}`)
}

func (d *doctor) tunnel(context.Context) (string, error) {
	path, err := exec.LookPath("cloudflared")
	if err != nil {
		return "", errNotHere("cloudflared is not on the PATH; `/a2mcp tunnel` takes the one that xfer.cloudflared names, or fetches it")
	}
	return path, nil
}
