package clients

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTypeScriptSDK: the TypeScript SDK v1; the script fails on the first thing
// that is not as it should be (M1, M3, M4, M11, H5).
func TestTypeScriptSDK(t *testing.T) {
	b := startBridge(t)
	cmd := node(t, linked(t, "typescript-sdk.mjs"), b.URL, b.Token)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if r := b.waitDone(t, "never", 0); r.IsError == nil || !*r.IsError {
		t.Errorf("the record of the cancelled call: %+v", r)
	}
}

// linked copies a script next to the packages it imports, where Node looks.
func linked(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(need(t, "A2MCP_NPM"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestInspector: the Inspector's command line lists, calls and reports a tool
// error (M3, M4).
func TestInspector(t *testing.T) {
	b := startBridge(t)
	inspect := func(args ...string) (map[string]any, int) {
		t.Helper()
		all := append([]string{filepath.Join(need(t, "A2MCP_NPM"), ".bin", "mcp-inspector"), "--cli", b.URL,
			"--transport", "http", "--header", "Authorization: Bearer " + b.Token}, args...)
		cmd := node(t, all...)
		cmd.Env = append(cmd.Env, "HOME="+t.TempDir())
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		var result map[string]any
		if json.Unmarshal(out, &result) != nil {
			t.Fatalf("inspector %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return result, cmd.ProcessState.ExitCode()
	}
	if list, code := inspect("--method", "tools/list"); code != 0 || len(list["tools"].([]any)) < 10 {
		t.Errorf("list: exit %d, %v", code, list)
	}
	if res, code := inspect("--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=hello"); code != 0 ||
		!strings.Contains(toJSON(t, res), `"text":"hello"`) {
		t.Errorf("call: exit %d, %v", code, res)
	}
	if res, code := inspect("--method", "tools/call", "--tool-name", "test_image_content"); code != 0 ||
		!strings.Contains(toJSON(t, res), `"mimeType":"image/png"`) {
		t.Errorf("image: exit %d, %v", code, res)
	}
	if res, code := inspect("--method", "tools/call", "--tool-name", "test_error_handling"); code != 5 || res["isError"] != true {
		t.Errorf("tool error: exit %d, want 5; %v", code, res)
	}
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestConformance runs the official suites. What is expected to fail is in a file
// beside this one, and a stale entry fails too: JSON only, text and image only,
// no resources, prompts, sampling, logging (H6, M1, M4). The Origin rule (H7) is
// what dns-rebinding-protection checks.
func TestConformance(t *testing.T) {
	for _, suite := range []struct {
		version string
		args    []string
	}{
		{"0.1.16", []string{"--suite", "all"}},
		{"0.2.0-alpha.12", []string{"--requirements", "2025-11-25"}},
	} {
		t.Run(suite.version, func(t *testing.T) {
			b := startBridge(t)
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			args := append([]string{
				"--import", linked(t, "bearer.mjs"),
				filepath.Join(need(t, "A2MCP_NPM"), "conformance-"+suite.version, "dist", "index.js"),
				"server", "--url", b.URL,
				"--expected-failures", filepath.Join(here, "expected-failures-"+suite.version+".yml"),
			}, suite.args...)
			cmd := node(t, args...)
			cmd.Dir = t.TempDir()
			cmd.Env = append(cmd.Env, "MCP_BEARER="+b.Token)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", tail(string(out), 12))
		})
	}
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
