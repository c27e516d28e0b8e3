package tests

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/a2mcp/a2mcp/"

// mayImport is the house: which of our packages a package may import, and which
// modules of others. Imports point down, never sideways, and each module of
// others is named by one package, golang.org/x/sys by those that start processes or ask a
// terminal.
var mayImport = map[string]struct{ ours, others []string }{
	"proto":             {},
	"audit":             {},
	"files/dufs":        {ours: []string{"files/child"}},
	"files/child":       {others: []string{"golang.org/x/sys"}},
	"files/obtain":      {},
	"files":             {ours: []string{"audit"}, others: []string{"golang.org/x/net", "golang.org/x/sys"}},
	"hostrpc":           {ours: []string{"proto"}, others: []string{"github.com/sourcegraph/jsonrpc2"}},
	"hostrpc/extension": {},
	"hostrpc/refhost":   {ours: []string{"proto", "hostrpc"}},
	"httpfront":         {ours: []string{"proto", "audit"}, others: []string{"github.com/google/uuid"}},
	"sidecar":           {ours: []string{"proto", "audit", "files", "files/child", "files/dufs", "files/obtain", "hostrpc", "httpfront"}, others: []string{"github.com/fsnotify/fsnotify", "golang.org/x/sys"}},
	"cmd/a2mcp":         {ours: []string{"proto", "audit", "sidecar", "hostrpc/refhost", "hostrpc/extension"}, others: []string{"github.com/alecthomas/kong", "golang.org/x/sys"}},
}

// sources calls f for every Go file of the product that is no test.
func sources(t *testing.T, f func(pkg, path string, data []byte)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "tests" || strings.HasPrefix(entry.Name(), ".") && path != "..") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil {
			f(filepath.ToSlash(strings.TrimPrefix(filepath.Dir(path), ".."+string(filepath.Separator))), path, data)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImportsPointDown(t *testing.T) {
	seen := 0
	sources(t, func(pkg, path string, data []byte) {
		seen++
		allowed, known := mayImport[pkg]
		if !known {
			t.Errorf("%s: the house has no room %q", path, pkg)
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, data, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if ours, ok := strings.CutPrefix(name, module); ok {
				if !slices.Contains(allowed.ours, ours) {
					t.Errorf("%s imports %s", path, ours)
				}
			} else if strings.Contains(strings.Split(name, "/")[0], ".") && !slices.ContainsFunc(allowed.others, func(m string) bool {
				return name == m || strings.HasPrefix(name, m+"/")
			}) {
				t.Errorf("%s imports %s", path, name)
			}
		}
	})
	if seen < 30 {
		t.Errorf("only %d files looked at", seen)
	}
}

func TestFilesAreShort(t *testing.T) {
	sources(t, func(_, path string, data []byte) {
		if lines := bytes.Count(data, []byte("\n")); lines > 400 {
			t.Errorf("%s has %d lines", path, lines)
		}
	})
}

// Only the command touches standard input and output: a stray byte there breaks
// the protocol (R01).
func TestOnlyTheCommandTouchesStdio(t *testing.T) {
	sources(t, func(pkg, path string, data []byte) {
		if pkg == "cmd/a2mcp" {
			return
		}
		for _, word := range []string{"os.Stdin", "os.Stdout", "fmt.Print", "slog.Default", "log.Print"} {
			if bytes.Contains(data, []byte(word)) {
				t.Errorf("%s uses %s", path, word)
			}
		}
	})
}

var eventPattern = regexp.MustCompile(`\b[Ll]og(?:\(\))?\.(?:Info|Warn|Error)\("([^"]+)"`)

// stderr is an interface: every line of it is an event that HOST.md lists.
func TestEventsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../proto/HOST.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	sources(t, func(pkg, path string, data []byte) {
		if strings.HasPrefix(pkg, "cmd/") || pkg == "hostrpc/refhost" {
			return // these are no sidecar
		}
		for _, found := range eventPattern.FindAllSubmatch(data, -1) {
			seen++
			if event := string(found[1]); !bytes.Contains(page, []byte("`"+event+"`")) {
				t.Errorf("%s says %q, which proto/HOST.md does not list", path, event)
			}
		}
	})
	if seen < 30 {
		t.Errorf("only %d events found", seen)
	}
}
