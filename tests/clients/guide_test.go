package clients

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// shown returns the examples of a kind, which is the info string of their fence,
// that are on the pages for people who connect clients.
func shown(t *testing.T, kind string) []string {
	t.Helper()
	var texts []string
	fence := regexp.MustCompile("(?ms)^```" + kind + "\n(.*?)^```$")
	for _, page := range []string{"README.md", "httpfront/CLIENTS.md"} {
		data, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fence.FindAllStringSubmatch(string(data), -1) {
			texts = append(texts, m[1])
		}
	}
	if len(texts) == 0 {
		t.Fatalf("no example of the kind %q", kind)
	}
	return texts
}

// shell prepares an example for a shell, with the pinned packages where npx and the
// shell look, the binary at bin/a2mcp and a home folder of its own.
func (b *bridge) shell(t *testing.T, text string) *exec.Cmd {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(done)
	modules, dir := need(t, "A2MCP_NPM"), t.TempDir()
	for link, target := range map[string]string{"node_modules": modules, "bin": filepath.Dir(need(t, "A2MCP"))} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "big.iso"), []byte("big"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", text)
	cmd.WaitDelay = 5 * time.Second
	cmd.Dir = dir
	cmd.Env = []string{
		"HOME=" + t.TempDir(), "PATH=" + filepath.Join(modules, ".bin") + ":" + os.Getenv("PATH"), "NO_PROXY=*",
		"A2MCP_URL=" + b.URL, "A2MCP_TOKEN=" + b.Token, "npm_config_offline=true", "DISABLE_AUTOUPDATER=1",
	}
	return cmd
}

// run runs an example and returns what it prints.
func (b *bridge) run(t *testing.T, text string) string {
	t.Helper()
	out, err := b.shell(t, text).CombinedOutput()
	if err != nil || strings.Contains(string(out), b.Token) {
		t.Errorf("%s\n%v\n%s", text, err, out)
	}
	return string(out)
}

// TestGuideNPM: the examples for Claude Code, the Inspector and the TypeScript SDK
// do what they say.
func TestGuideNPM(t *testing.T) {
	b := startBridge(t)
	for _, text := range shown(t, "sh npm") {
		want := "Added HTTP MCP server a2mcp"
		switch {
		case strings.Contains(text, "claude mcp list"):
			want = "✔ Connected"
		case strings.Contains(text, "inspector"):
			want = `"text": "Linux\n"`
		}
		if out := b.run(t, strings.ReplaceAll(text, "uname -s", "echo Linux")); !strings.Contains(out, want) {
			t.Errorf("%s\nprints no %q but\n%s", text, want, out)
		}
	}
	for _, text := range shown(t, "js npm") {
		name := filepath.Join(t.TempDir(), "client.mjs")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out := b.run(t, "cp '"+name+"' . && node client.mjs"); !strings.Contains(out, "'bash'") || !strings.Contains(out, "false ") {
			t.Errorf("the TypeScript SDK prints\n%s", out)
		}
	}
}

// TestGuideRemote: the configuration of clients that speak stdio only starts what
// a client can speak with.
func TestGuideRemote(t *testing.T) {
	b := startBridge(t)
	for _, text := range shown(t, "json npm") {
		var file struct {
			Servers map[string]struct {
				Command string            `json:"command"`
				Args    []string          `json:"args"`
				Env     map[string]string `json:"env"`
			} `json:"mcpServers"`
		}
		text = strings.NewReplacer("http://127.0.0.1:33615/", b.URL, `"TOKEN"`, strconv.Quote(b.Token)).Replace(text)
		if err := json.Unmarshal([]byte(text), &file); err != nil {
			t.Fatal(err)
		}
		server := file.Servers["a2mcp"]
		cmd := b.shell(t, `exec "$0" "$@"`)
		cmd.Args = append(append(cmd.Args, server.Command), server.Args...)
		cmd.Env = append(cmd.Env, "A2MCP_TOKEN="+server.Env["A2MCP_TOKEN"])
		session := connectSDK(t, &mcp.CommandTransport{Command: cmd})
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "through"}})
		if err != nil || res.IsError || res.Content[0].(*mcp.TextContent).Text != "through" {
			t.Errorf("%+v, %v", res, err)
		}
	}
}

// TestGuideProject: Claude Code takes the .mcp.json of a project, asks, and connects
// once that is allowed.
func TestGuideProject(t *testing.T) {
	b := startBridge(t)
	for _, text := range shown(t, "json claude") {
		for settings, want := range map[string]string{
			`{}`: "Pending approval", `{"enabledMcpjsonServers": ["a2mcp"]}`: "✔ Connected",
		} {
			out := b.run(t, "mkdir ~/.claude && echo '"+settings+"' >~/.claude/settings.json\n"+
				"cat >.mcp.json <<'end'\n"+text+"end\nclaude mcp list")
			if !regexp.MustCompile(`(?m)^a2mcp: .*` + want).MatchString(out) {
				t.Errorf("with %s claude mcp list says\n%s", settings, out)
			}
		}
	}
}

// TestGuideSSH: the way through a port forward, with the real ssh and a server of
// this test (C1).
func TestGuideSSH(t *testing.T) {
	b := startBridge(t)
	server := startSSH(t)
	local := freePort(t)
	for _, text := range shown(t, "sh ssh") {
		share := t.TempDir()
		port := b.URL[strings.LastIndex(b.URL, ":")+1 : len(b.URL)-1]
		text = strings.NewReplacer("33615", port, "8765", local, "uname -n", "echo far").Replace(text)
		cmd := b.shell(t, "bin/a2mcp call xfer_share path='"+share+"' >share.json\n"+text)
		server.configure(t, cmd)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "far\n") {
			t.Errorf("%s\n%v\n%s", text, err, out)
		}
		if data, err := os.ReadFile(filepath.Join(share, "big.iso")); err != nil || string(data) != "big" {
			t.Errorf("the uploaded file is %q, %v", data, err)
		}
	}
	if server.forwarded.Load() < 2 {
		t.Errorf("%d connections came through SSH", server.forwarded.Load())
	}
}

// TestGuidePython runs the example for the Python SDK where that is installed. It
// is on PyPI, which the other tests do without.
func TestGuidePython(t *testing.T) {
	if out, err := exec.Command("python3", "-c", "from mcp.client.streamable_http import streamable_http_client").CombinedOutput(); err != nil {
		t.Skipf("no Python SDK here, so its example was not run: %s", tail(string(out), 1))
	}
	b := startBridge(t)
	for _, text := range shown(t, "python") {
		cmd := b.shell(t, "exec python3 -W error -")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "'bash'") || !strings.Contains(string(out), "False ") {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// claude runs Claude Code with a model that asks for one tool, and returns what it
// prints. The model is a script of this test.
func (b *bridge) claude(t *testing.T, tool, arguments string, env ...string) string {
	t.Helper()
	name := "mcp__a2mcp__" + tool
	model := newScriptedModel(t, name, arguments)
	cmd := b.shell(t, `claude mcp add --transport http a2mcp "$A2MCP_URL" --header "Authorization: Bearer $A2MCP_TOKEN" >/dev/null
claude -p 'ask the host' --allowedTools `+name+` </dev/null`)
	cmd.Env = append(append(cmd.Env, "ANTHROPIC_BASE_URL="+model.URL, "ANTHROPIC_API_KEY=not-a-real-key",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "ENABLE_TOOL_SEARCH=false"), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}

// TestClaudeCode: Claude Code calls a tool because its model asks for it, and
// cancels one that takes too long (M4, M11).
func TestClaudeCode(t *testing.T) {
	b := startBridge(t)
	if out := b.claude(t, "bash", `{"command":"echo from the host"}`); !strings.Contains(out, "the tool said: from the host") {
		t.Errorf("it says\n%s", out)
	}
	if r := b.waitDone(t, "bash", 0); r.IsError == nil || *r.IsError {
		t.Errorf("the record of the call: %+v", r)
	}
	if out := b.claude(t, "never", `{}`, "MCP_TOOL_TIMEOUT=2000"); !strings.Contains(out, "timed out after 2s") {
		t.Errorf("it says\n%s", out)
	}
	if r := b.waitDone(t, "never", 5*time.Second); r.IsError == nil || !*r.IsError {
		t.Errorf("the record of the cancelled call: %+v", r)
	}
}
