package main

import (
	"encoding/json"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/a2mcp/a2mcp/sidecar"
)

// target is how call and tools find a bridge and its token.
type target struct {
	URL       string `help:"Address of the bridge. Default: the bridge that is running on this machine." env:"A2MCP_URL" placeholder:"URL"`
	TokenFile string `help:"File that holds the token. Default: $A2MCP_TOKEN, then the configuration of a bridge that is running on this machine." placeholder:"FILE" type:"existingfile"`
	agentFolder
}

// connect finds the bridge. From then on a broken pipe is an error of the one who
// writes: the session is given back, and the exit code tells.
func (t target) connect() (*client, error) {
	signal.Ignore(syscall.SIGPIPE)
	token, err := t.givenToken()
	if err != nil {
		return nil, err
	}
	if t.URL != "" && !isAddress(t.URL) {
		return nil, failed(exitUsage, "%q is no address; write http://HOST:PORT/ with a name or an IP address written in full", t.URL)
	}
	if t.URL != "" && token != "" {
		return newClient(t.URL, token), nil
	}
	dir, err := t.path()
	if err != nil {
		return nil, err
	}
	running, address := runningBridges(dir), t.URL
	switch {
	case address == "":
		if address, err = choose(running, dir); err != nil {
			return nil, err
		}
	case !slices.ContainsFunc(running, func(b bridge) bool { return sameOrigin(b.URL, address) }):
		return nil, failed(exitUsage, "no bridge of the agent folder %s is running at %s, so its token is not sent there; give --token-file or set A2MCP_TOKEN", dir, address)
	}
	if token == "" {
		if token, err = ownToken(dir); err != nil {
			return nil, err
		}
	}
	return newClient(address, token), nil
}

func isAddress(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || !isHost(u.Hostname()) {
		return false
	}
	_, err = strconv.ParseUint(u.Port(), 10, 16)
	return err == nil || u.Port() == ""
}

// hostName is a name as DNS has them (RFC 1123), or with underscores, as containers
// have them.
var hostName = regexp.MustCompile(`^[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?(\.[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?)*$`)

// shortAddress is a last label that makes an address in short of a host, such as 127.1:
// the rule for proxies does not see that it is loopback (C1).
var shortAddress = regexp.MustCompile(`^([0-9]+|0[xX][0-9a-fA-F]*)$`)

// isHost reports whether a host is an address written in full or a name.
func isHost(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || hostName.MatchString(host) && !shortAddress.MatchString(host[strings.LastIndex(host, ".")+1:])
}

// sameOrigin reports whether two addresses lead to the same port of the same host by
// the same protocol. A name is not its address: they may lead to different programs.
func sameOrigin(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && x.Scheme == y.Scheme && x.Host == y.Host
}

// configFile is where the configuration of an agent folder is (F1).
func configFile(dir string) string {
	if config := os.Getenv("A2MCP_CONFIG"); config != "" {
		return config
	}
	return filepath.Join(dir, "a2mcp.json")
}

// auditFile is where the log of an agent folder is (L1).
func auditFile(dir string) string {
	if log := os.Getenv("A2MCP_AUDIT"); log != "" {
		return log
	}
	return filepath.Join(dir, "a2mcp.log")
}

// bridge is what a bridge says of itself (F5).
type bridge struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
	Cwd string `json:"cwd"`
}

// runningBridges are those of an agent folder that live and listen.
func runningBridges(dir string) (running []bridge) {
	dir = filepath.Join(dir, "a2mcp.run")
	files, _ := os.ReadDir(dir) // where there is no folder, there is no bridge
	for _, file := range files {
		if filepath.Ext(file.Name()) != ".json" {
			continue
		}
		var b bridge
		data, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil || json.Unmarshal(data, &b) != nil || !sidecar.ProcessAlive(b.PID) || !listening(b.URL) {
			continue // it died without a word, and its port may be somebody else's by now, who must not see the token
		}
		running = append(running, b)
	}
	return running
}

// choose takes the bridge that is running, or of several the one whose host works in
// this folder or in the nearest above it.
func choose(running []bridge, dir string) (string, error) {
	here, _ := os.Getwd()
	var nearest []bridge
	for _, b := range running {
		switch {
		case !within(b.Cwd, here):
		case nearest == nil || len(b.Cwd) > len(nearest[0].Cwd):
			nearest = []bridge{b}
		case b.Cwd == nearest[0].Cwd:
			nearest = append(nearest, b)
		}
	}
	switch {
	case len(running) == 1:
		return running[0].URL, nil
	case len(nearest) == 1:
		return nearest[0].URL, nil
	case len(running) == 0:
		return "", failed(exitDead, "no bridge is running with the agent folder %s; start the host, or give --url%s", dir, demoHint(dir))
	}
	var addresses []string
	for _, b := range running {
		addresses = append(addresses, b.URL)
	}
	return "", failed(exitUsage, "several bridges are running; give --url, one of %s", strings.Join(addresses, ", "))
}

// within reports whether path is a folder or below it.
func within(folder, path string) bool {
	separator := string(filepath.Separator)
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, separator)+separator)
}

// demoHint names the agent folder of the demo, to be put behind the text that nothing
// was found in another one; it is empty where no demo is running.
func demoHint(dir string) string {
	demo, err := demoFolder()
	if err != nil || demo == dir || len(runningBridges(demo)) == 0 {
		return ""
	}
	return "; a demo is running: --agent-dir " + demo
}

func listening(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	conn, err := net.DialTimeout("tcp", u.Host, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
