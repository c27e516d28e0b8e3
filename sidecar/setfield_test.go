package sidecar

import (
	"os"
	"path/filepath"
	"testing"
)

// F1: the port goes into the file, and every other byte of it stays.
func TestSetPort(t *testing.T) {
	for _, c := range []struct {
		before string
		port   int
		after  string
	}{
		{`{ "z":"<>", "port" : 1 ,"a":1e2}`, 8080, `{ "z":"<>", "port" : 8080 ,"a":1e2}`},
		{`{"port":8080}`, 0, `{"port":0}`},
		{"{\n  \"z\": 1\n}\n", 8080, "{\n  \"port\": 8080,\n  \"z\": 1\n}\n"},
		{`{"Port":1}`, 0, `{"Port":1}`},
		{"{}\n", 0, "{}\n"},
		{"null", 8080, "null"},
		{`{"port": 1`, 8080, `{"port": 1`},
	} {
		path := filepath.Join(t.TempDir(), "a2mcp.json")
		if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := SetPort(path, c.port); err != nil {
			t.Errorf("%s: %v", c.before, err)
		}
		if after, _ := os.ReadFile(path); string(after) != c.after {
			t.Errorf("%q became %q, want %q", c.before, after, c.after)
		}
	}
	path := filepath.Join(t.TempDir(), "new", "a2mcp.json")
	if err := SetPort(path, 0); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a file was made for nothing")
	}
	if err := SetPort(path, 8080); err != nil {
		t.Error(err)
	}
	cfg, _, err := readConfig(path)
	if err != nil || cfg.Port != 8080 || len(cfg.Token) != 43 {
		t.Errorf("port %d, token of %d characters, %v", cfg.Port, len(cfg.Token), err)
	}
	if err := SetPort(filepath.Join(path, "a2mcp.json"), 8080); err == nil {
		t.Error("a file below a file was made")
	}
}
