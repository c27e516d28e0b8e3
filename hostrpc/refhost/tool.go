package refhost

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/a2mcp/a2mcp/proto"
)

// tool is one entry of the registry.
type tool struct {
	name        string
	description string
	schema      string // raw JSON; empty: the tool has none
	exclusive   bool   // one at a time (M12)
	asks        bool   // changes something: the operator may want to be asked
	vanished    bool   // listed, but gone when it is called
	run         func(e env, arguments []byte) (content []byte, isError bool, err error)
}

// env is what a tool gets besides its arguments.
type env struct {
	ctx    context.Context
	host   *Host
	callID string
}

// progress sends what is new of a tool's output.
func (e env) progress(text string) {
	e.host.note(proto.FeatureProgress, proto.HostToolProgress, struct {
		CallID  string          `json:"callId"`
		Content json.RawMessage `json:"content"`
	}{e.callID, proto.TextContent(text)})
}

// path resolves a path the way a shell at the host's folder would.
func (e env) path(p string) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		return filepath.Join(e.host.opt.Home, p[1:])
	}
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(e.host.opt.Cwd, p)
}

// note sends a notification for a feature, unless it is left out.
func (h *Host) note(feature, method string, params any) {
	h.mu.Lock()
	conn := h.conn
	h.mu.Unlock()
	if conn != nil && slices.Contains(h.opt.Features, feature) {
		_, _ = conn.Notify(method, proto.Encode(params))
	}
}

func realTools() []tool {
	return []tool{readTool(), writeTool(), bashTool(), grepTool()}
}

// validate checks arguments against the schema as far as this host's own schemas
// go: the required members, their types, and no others (M7).
func (t *tool) validate(arguments []byte) error {
	if !proto.IsObjectSchema([]byte(t.schema)) {
		return nil
	}
	if string(arguments) == "null" {
		arguments = []byte(`{}`) // what some clients send for nothing
	}
	if !proto.IsObject(arguments) {
		return fmt.Errorf("%s: the arguments have to be an object", t.name)
	}
	properties := proto.Member([]byte(t.schema), "properties")
	var problems []string
	for name := range proto.Elements(proto.Member([]byte(t.schema), "required")) {
		key, _ := proto.Text(name)
		if proto.Member(arguments, key) == nil {
			problems = append(problems, key+" is missing")
		}
	}
	closed := string(proto.Member([]byte(t.schema), "additionalProperties")) == "false"
	for key, value := range proto.Members(arguments) {
		property := proto.Member(properties, string(key))
		if property == nil {
			if closed {
				problems = append(problems, string(key)+" is not an argument")
			}
			continue
		}
		if want, _ := proto.Text(proto.Member(property, "type")); !ofType(value, want) {
			problems = append(problems, fmt.Sprintf("%s has to be of type %s", key, want))
		}
	}
	if problems != nil {
		return fmt.Errorf("%s: %s", t.name, strings.Join(problems, "; "))
	}
	return nil
}

func ofType(value []byte, want string) bool {
	switch c := value[0]; want {
	case "string":
		return c == '"'
	case "number":
		return c == '-' || '0' <= c && c <= '9'
	case "integer":
		return (c == '-' || '0' <= c && c <= '9') && !strings.ContainsAny(string(value), ".eE")
	case "boolean":
		return c == 't' || c == 'f'
	case "object":
		return c == '{'
	case "array":
		return c == '['
	}
	return true
}

// decode reads validated arguments.
func decode[A any](arguments []byte) (a A, err error) {
	err = json.Unmarshal(arguments, &a)
	return a, err
}

// readable refuses what is no regular file: reading a pipe would hang.
func readable(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return info, nil
}
