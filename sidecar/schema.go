package sidecar

import (
	_ "embed"
	"errors"
)

//go:embed config.schema.json
var configSchema []byte

// ConfigSchema is the JSON schema of the configuration (F1), for editors.
func ConfigSchema() []byte { return configSchema }

// CheckConfig lists all that is wrong with a configuration, none if the bridge
// would take it over, and what is only odd (F1).
func CheckConfig(data []byte) (problems, warnings []string) {
	_, warnings, err := parseConfig(data)
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
	return problems, warnings
}
