package tests

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the built binary by few scripts: exit codes, streams, help.
func TestScripts(t *testing.T) {
	bin := binary(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			link := filepath.Join(env.WorkDir, "bin")
			if err := os.Mkdir(link, 0o700); err != nil {
				return err
			}
			if err := os.Symlink(bin, filepath.Join(link, "a2mcp")); err != nil {
				return err
			}
			env.Setenv("PATH", link+string(os.PathListSeparator)+env.Getenv("PATH"))
			hello := `{"jsonrpc":"2.0","id":"h1","method":"hello","params":{"protocol":1,"host":{"name":"x","version":"1","mode":"m","pid":1},"agentDir":"` +
				filepath.ToSlash(filepath.Join(env.WorkDir, "agent")) + `","home":"/","cwd":"/","features":[],"memory":null}}` + "\n"
			return os.WriteFile(filepath.Join(env.WorkDir, "hello-lines"), []byte(hello), 0o600)
		},
	})
}
