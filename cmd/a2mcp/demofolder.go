package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/a2mcp/a2mcp/proto"
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
	if err := setPort(config, cmd.Port); err != nil {
		return "", fmt.Errorf("writing the port into %s: %w", config, err)
	}
	return dir, nil
}

// setPort writes the port into a configuration that has another one. What else is
// in the file stays; one that is no object is left for the sidecar to complain of.
func setPort(path string, port int) error {
	fields := map[string]json.RawMessage{}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case json.Unmarshal(data, &fields) != nil || fields == nil: // null is no object either
		return nil
	}
	wanted := proto.Encode(port)
	if string(fields["port"]) == string(wanted) || fields["port"] == nil && port == 0 {
		return nil
	}
	fields["port"] = wanted
	whole, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(linkTarget(path), append(whole, '\n'))
}

// linkTarget follows symbolic links, so that the file is replaced and no link, also
// where it is yet to be made.
func linkTarget(path string) string {
	for range 16 { // links in a row
		next, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		path = next
	}
	return path
}

// replaceFile puts a file in place whole, by way of a private one beside it.
func replaceFile(path string, data []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".a2mcp-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // gone already where all went well
	_, err = file.Write(data)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
