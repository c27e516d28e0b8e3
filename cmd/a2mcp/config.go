package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/a2mcp/a2mcp/sidecar"
)

// configCmd is what can be asked about the configuration without a bridge.
type configCmd struct {
	Check  configCheckCmd  `cmd:"" help:"Say all that is wrong with a configuration; exit code 1 if anything is."`
	Schema configSchemaCmd `cmd:"" help:"Print the JSON schema of the configuration, for editors."`
}

// configCheckCmd checks a file as the bridge would.
type configCheckCmd struct {
	File string `arg:"" optional:"" help:"Default: $A2MCP_CONFIG, then a2mcp.json of the agent folder." placeholder:"FILE" type:"path"`
	agentFolder
}

// Run is a2mcp config check.
func (cmd configCheckCmd) Run() error {
	file, err := cmd.file()
	if err != nil {
		return report(err)
	}
	problems, warnings, err := sidecar.CheckConfig(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no %s; a host that starts with the bridge makes it, and --agent-dir or FILE names another", file)
	case err != nil:
		return err
	}
	for _, w := range warnings {
		fmt.Fprintf(stdout, "%s: warning: %s\n", printable(file), printable(w))
	}
	for _, p := range problems {
		fmt.Fprintf(stdout, "%s: %s\n", printable(file), printable(p))
	}
	if problems != nil {
		return exitCode(1)
	}
	fmt.Fprintf(stdout, "%s: good\n", printable(file))
	return nil
}

func (cmd configCheckCmd) file() (string, error) {
	if cmd.File != "" {
		return cmd.File, nil
	}
	dir, err := cmd.path()
	if err != nil {
		return "", err
	}
	return configFile(dir), nil
}

// configSchemaCmd prints the schema.
type configSchemaCmd struct{}

// Run is a2mcp config schema.
func (configSchemaCmd) Run() error {
	_, err := stdout.Write(sidecar.ConfigSchema())
	return err
}
