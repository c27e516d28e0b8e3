package host

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// bridge is a running bridge and a client of it.
type bridge struct {
	URL     string `json:"url"`
	PID     int    `json:"pid"`
	HostPID int    `json:"hostPid"`

	t       *testing.T
	place   *place
	token   string
	session string
	lastID  atomic.Int64
}

// result is what a tool answered.
type result struct {
	Content []struct{ Type, Text, Data, MimeType string }
	IsError bool
}

func (r result) text() string {
	var all strings.Builder
	for _, block := range r.Content {
		all.WriteString(block.Text)
	}
	return all.String()
}

// post sends one message and returns status and body.
func (b *bridge) post(body string) (int, []byte) {
	b.t.Helper()
	status, answer, err := b.try(context.Background(), body)
	if err != nil {
		b.t.Fatal(err)
	}
	return status, answer
}

func (b *bridge) try(ctx context.Context, body string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.URL, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	if b.session != "" {
		req.Header.Set("Mcp-Session-Id", b.session)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		b.session = id
	}
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// connect shakes hands.
func (b *bridge) connect() *bridge {
	b.t.Helper()
	if status, body := b.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}`); status != http.StatusOK || b.session == "" {
		b.t.Fatalf("initialize: %d %s", status, body)
	}
	return b
}

// ask makes one request and decodes its result.
func (b *bridge) ask(id any, method string, params, into any) {
	b.t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		b.t.Fatal(err)
	}
	status, answer := b.post(string(body))
	var reply struct {
		Result json.RawMessage
		Error  json.RawMessage
	}
	if err := json.Unmarshal(answer, &reply); err != nil || status != http.StatusOK || reply.Error != nil {
		b.t.Fatalf("%s: %d %s %v", method, status, answer, err)
	}
	if err := json.Unmarshal(reply.Result, into); err != nil {
		b.t.Fatalf("%s: %v: %s", method, err, answer)
	}
}

// call calls a tool.
func (b *bridge) call(name string, arguments map[string]any) result {
	b.t.Helper()
	return b.callAs(b.lastID.Add(1), name, arguments)
}

func (b *bridge) callAs(id any, name string, arguments map[string]any) result {
	b.t.Helper()
	var res result
	b.ask(id, "tools/call", map[string]any{"name": name, "arguments": arguments}, &res)
	return res
}

// works calls a tool that has to succeed.
func (b *bridge) works(name string, arguments map[string]any) result {
	b.t.Helper()
	res := b.call(name, arguments)
	if res.IsError {
		b.t.Fatalf("%s %v: %s", name, arguments, res.text())
	}
	return res
}

// tools lists the names of the catalogue.
func (b *bridge) tools() map[string]json.RawMessage {
	b.t.Helper()
	var list struct {
		Tools []struct {
			Name        string
			InputSchema json.RawMessage
		}
	}
	b.ask(b.lastID.Add(1), "tools/list", map[string]any{}, &list)
	tools := map[string]json.RawMessage{}
	for _, tool := range list.Tools {
		tools[tool.Name] = tool.InputSchema
	}
	return tools
}

// records counts the records of a tool by phase.
func (p *place) records(tool string) (start, done int) {
	p.t.Helper()
	for _, name := range []string{"a2mcp.log.1", "a2mcp.log"} {
		data, _ := os.ReadFile(filepath.Join(p.agent, name))
		for line := range bytes.Lines(data) {
			var record struct{ Phase, Tool string }
			if json.Unmarshal(line, &record) != nil || record.Tool != tool {
				continue
			}
			switch record.Phase {
			case "start":
				start++
			case "done":
				done++
			}
		}
	}
	return start, done
}
