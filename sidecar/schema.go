package sidecar

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
)

//go:embed config.schema.json
var configSchema []byte

// ConfigSchema is the JSON schema of the configuration (F1), for editors.
func ConfigSchema() []byte { return configSchema }

// CheckConfig lists all that is wrong with a configuration file, none if the bridge
// would take it over, and what is only odd (F1). The error is a file that cannot be
// read.
func CheckConfig(path string) (problems, warnings []string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the configuration: %w", err)
	}
	cfg, warnings, err := parseConfig(data)
	if everyNetwork(cfg.Host) {
		warnings = append(warnings, "host: "+cfg.Host+" is every network of this machine, in plain HTTP")
	}
	return problemsOf(err), append(warnings, exposure(path)...), nil
}

func problemsOf(err error) (problems []string) {
	var several configProblems
	switch {
	case err == nil:
	case errors.As(err, &several):
		for _, p := range several {
			problems = append(problems, p.Error())
		}
	default:
		problems = []string{err.Error()}
	}
	return problems
}
