package main

import (
	"encoding/json"
	"os"
	"strings"
)

// givenToken is the token that the command line or the environment names; empty if
// neither does.
func (t target) givenToken() (string, error) {
	if t.TokenFile != "" {
		data, err := os.ReadFile(t.TokenFile)
		if err != nil {
			return "", failed(exitUsage, "reading the token: %v", err)
		}
		return trimmed(string(data), t.TokenFile)
	}
	if token := os.Getenv("A2MCP_TOKEN"); token != "" {
		return trimmed(token, "A2MCP_TOKEN")
	}
	return "", nil
}

// ownToken is the token in the configuration of an agent folder.
func ownToken(dir string) (string, error) {
	config := configFile(dir)
	data, err := os.ReadFile(config)
	var fields struct {
		Token string `json:"token"`
	}
	if err != nil || json.Unmarshal(data, &fields) != nil || fields.Token == "" {
		return "", failed(exitUsage, "no token in %s; give --token-file or set A2MCP_TOKEN", config)
	}
	return trimmed(fields.Token, config)
}

// trimmed is a token without the white space around it. What cannot stand in a header
// is refused here, by a text that does not show it (A5).
func trimmed(token, source string) (string, error) {
	token = strings.Trim(token, " \t\r\n\v\f")
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", failed(exitUsage, "the token in %s has to be one word of visible ASCII; give --token-file or set A2MCP_TOKEN", source)
	}
	return token, nil
}
