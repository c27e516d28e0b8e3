package tests

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// binary builds a2mcp once and returns its path.
func binary(t *testing.T) string {
	t.Helper()
	path, err := buildBinary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var buildBinary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "a2mcp.exe") // the suffix Windows asks for bothers nobody else
	cmd := exec.Command("go", "build", "-ldflags", "-X main.release=test", "-o", path, "github.com/a2mcp/a2mcp/cmd/a2mcp")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building a2mcp: %w\n%s", err, out)
	}
	return path, nil
})

var buildDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "a2mcp-tests-")
	if err != nil {
		panic(err)
	}
	buildDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}
