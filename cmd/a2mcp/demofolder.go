package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/a2mcp/a2mcp/sidecar"
)

const maxPort = 65535

// folder makes the demo's folder with the port in its configuration. That is left
// alone while a bridge is running with it, which would move to the port, and where
// A2MCP_CONFIG names it and no port was asked for.
func (cmd demoCmd) folder() (string, error) {
	dir := cmd.AgentDir
	if dir == "" {
		var err error
		if dir, err = demoFolder(); err != nil {
			return "", fmt.Errorf("finding a folder for the demo: %w; give --agent-dir", err)
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the demo's folder: %w", err)
	}
	config := configFile(dir)
	switch {
	case cmd.Port == 0 && os.Getenv("A2MCP_CONFIG") != "":
		return dir, nil
	case len(runningBridges(dir)) > 0:
		if cmd.Port != 0 {
			fmt.Fprintf(os.Stderr, "a2mcp: a bridge is running with %s already, so %s is left as it is and --port does not count; give another --agent-dir\n", dir, config)
		}
		return dir, nil
	}
	if err := sidecar.SetPort(config, cmd.Port); err != nil {
		return "", fmt.Errorf("writing the port into %s: %w", config, err)
	}
	return dir, nil
}
