package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/a2mcp/a2mcp/files/child"
)

// emptyConfig makes a configuration with nothing in it: without one of its own
// cloudflared would follow the operator's, whose rules win over --url (T01). A
// file of no bytes would be complained about.
func emptyConfig() (path string, remove func(), err error) {
	f, err := os.CreateTemp("", "a2mcp-tunnel-*.yml") // mode 0600
	if err != nil {
		return "", nil, fmt.Errorf("making a configuration for cloudflared: %w", err)
	}
	_, err = f.WriteString("{}\n")
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", nil, fmt.Errorf("making a configuration for cloudflared: %w", err)
	}
	return f.Name(), func() { _ = os.Remove(f.Name()) }, nil
}

// attempt runs cloudflared until it has a registered connection. With an error
// the process is gone. What it says of itself on its metrics port decides: the
// name is printed long before anything answers there, and looking it up would
// make the resolver remember that it does not exist (T2).
func (t *tunnel) attempt(ctx context.Context, args []string, path string) (*child.Process, string, error) {
	said := &output{log: t.log}
	process, err := child.Start(context.WithoutCancel(ctx), child.Command{Path: path, Args: args, Env: child.Env(), Line: said.line})
	if err != nil {
		return nil, "", err
	}
	url, err := t.await(ctx, process, said)
	if err != nil {
		process.Stop(tunnelGrace)
		return nil, "", err
	}
	return process, url, nil
}

func (t *tunnel) await(ctx context.Context, process *child.Process, said *output) (url string, err error) {
	limit := t.after(t.limit)
	look := time.NewTicker(tunnelPoll)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-process.Done():
			return "", said.fault(process.Err())
		case <-limit:
			if url == "" {
				return "", said.silence(t.limit)
			}
			return "", errNoConnection
		case <-look.C:
		}
		metrics := said.metrics()
		if metrics == "" {
			continue
		}
		if url == "" {
			if url, err = askName(ctx, metrics); err != nil {
				return "", err
			}
		}
		if url != "" && askReady(ctx, metrics) {
			return url, nil
		}
	}
}

// cloudflared answers on loopback, whatever proxy the environment names.
var metricsClient = &http.Client{
	Timeout:       time.Second,
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// askMetrics returns the answer to a GET, "" for any but 200.
func askMetrics(ctx context.Context, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return ""
	}
	resp, err := metricsClient.Do(req)
	if err != nil {
		return "" // not up yet
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil || resp.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}

// askReady reports whether a connection is registered.
func askReady(ctx context.Context, metrics string) bool {
	return askMetrics(ctx, "http://"+metrics+"/ready") != ""
}

// quickName is the one kind of name that a quick tunnel has.
var quickName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?\.trycloudflare\.com$`)

// askName returns the address of the tunnel, "" while it has none. One that
// would lead elsewhere is an error: callers show it the token.
func askName(ctx context.Context, metrics string) (string, error) {
	var answer struct {
		Hostname string `json:"hostname"`
	}
	if json.Unmarshal([]byte(askMetrics(ctx, "http://"+metrics+"/quicktunnel")), &answer) != nil || answer.Hostname == "" {
		return "", nil
	}
	name := strings.TrimPrefix(answer.Hostname, "https://")
	if !quickName.MatchString(name) {
		return "", &tunnelFault{words: "cloudflared was given an address that is not below trycloudflare.com; it is not used", raw: answer.Hostname}
	}
	return "https://" + name, nil
}

// complaints is how many of cloudflared's last lines are kept.
const complaints = 8

var (
	metricsLine = regexp.MustCompile(`metrics server on (127\.0\.0\.1:[0-9]{1,5})/metrics`)
	linePrefix  = regexp.MustCompile(`^[0-9TZ:.+-]{20,35} [A-Z]{3} `)
)

// output takes the lines of cloudflared: where it tells of itself, and what it
// complained of last.
type output struct {
	log *slog.Logger

	mu       sync.Mutex
	address  string
	lastOnes []string
}

func (o *output) line(_, line string) {
	o.log.Debug("cloudflared", "line", line)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.address == "" {
		if found := metricsLine.FindStringSubmatch(line); found != nil {
			o.address = found[1]
		}
	}
	text := linePrefix.ReplaceAllString(line, "")
	if text == "" || text != line && !strings.Contains(line, " ERR ") && !strings.Contains(line, " FTL ") {
		return
	}
	if len(o.lastOnes) == complaints {
		o.lastOnes = append(o.lastOnes[:0], o.lastOnes[1:]...)
	}
	o.lastOnes = append(o.lastOnes, text)
}

func (o *output) metrics() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.address
}

func (o *output) complained() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.lastOnes...)
}
