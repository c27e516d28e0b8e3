package main

import (
	"encoding/json"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/a2mcp/a2mcp/sidecar"
)

// target is how call and tools find a bridge and its token.
type target struct {
	URL       string `help:"Address of the bridge. Default: the bridge that is running on this machine." env:"A2MCP_URL" placeholder:"URL"`
	TokenFile string `help:"File that holds the token. Default: $A2MCP_TOKEN, then the bridge's own configuration." placeholder:"FILE" type:"existingfile"`
	agentFolder
}

// connect finds the bridge.
func (t target) connect() (*client, error) {
	dir, err := t.path()
	if err != nil {
		return nil, err
	}
	address := t.URL
	if address == "" {
		if address, err = runningBridge(dir); err != nil {
			return nil, err
		}
	}
	if u, err := url.Parse(address); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, failed(exitUsage, "%q is no address; write http://HOST:PORT/", address)
	}
	token, err := t.token(dir)
	if err != nil {
		return nil, err
	}
	return newClient(address, token), nil
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

func (t target) token(dir string) (string, error) {
	if t.TokenFile != "" {
		data, err := os.ReadFile(t.TokenFile)
		if err != nil {
			return "", failed(exitUsage, "reading the token: %v", err)
		}
		return strings.TrimSpace(string(data)), nil
	}
	if token := os.Getenv("A2MCP_TOKEN"); token != "" {
		return token, nil
	}
	config := configFile(dir)
	data, err := os.ReadFile(config)
	var fields struct {
		Token string `json:"token"`
	}
	if err != nil || json.Unmarshal(data, &fields) != nil || fields.Token == "" {
		return "", failed(exitUsage, "no token in %s; give --token-file or set A2MCP_TOKEN", config)
	}
	return fields.Token, nil
}

// runningBridge reads what the bridges of an agent folder say of themselves (F5).
// Of several the one for this working folder is taken.
func runningBridge(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "a2mcp.run", "*.json"))
	if err != nil {
		return "", failed(exitUsage, "looking for a bridge: %v", err)
	}
	here, _ := os.Getwd()
	var found, near []string
	for _, file := range files {
		var bridge struct {
			URL string `json:"url"`
			PID int    `json:"pid"`
			Cwd string `json:"cwd"`
		}
		data, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(data, &bridge) != nil || !sidecar.ProcessAlive(bridge.PID) || !listening(bridge.URL) {
			continue // it died without a word, and its port may be somebody else's by now, who must not see the token
		}
		found = append(found, bridge.URL)
		if here == bridge.Cwd || strings.HasPrefix(here, strings.TrimSuffix(bridge.Cwd, string(filepath.Separator))+string(filepath.Separator)) {
			near = append(near, bridge.URL)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(near) == 1:
		return near[0], nil
	case len(found) == 0:
		return "", failed(exitDead, "no bridge is running with the agent folder %s; start the host, or give --url", dir)
	}
	return "", failed(exitUsage, "several bridges are running; give --url, one of %s", strings.Join(found, ", "))
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
