package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/a2mcp/a2mcp/hostrpc/extension"
)

// installCmd puts the extension and this binary where omp finds them.
type installCmd struct {
	agentFolder
	Package string `help:"Write a package into this folder instead, for omp plugin link or omp -e." placeholder:"DIR"`
}

// Run is a2mcp install.
func (cmd installCmd) Run() error {
	dir, err := cmd.folder()
	if err != nil {
		return report(err)
	}
	changed, err := install(dir)
	if err != nil {
		return report(failed(1, "installing into %s: %v", dir, err))
	}
	next := "start omp, or start it again: it loads the bridge by itself; `/a2mcp` in it shows the address"
	if cmd.Package != "" {
		next = "omp plugin link " + dir + ", or omp -e " + dir
	}
	fmt.Fprintf(os.Stdout, "%s\n%s\n", summary(dir, changed), next)
	return nil
}

func (cmd installCmd) folder() (string, error) {
	if cmd.Package != "" {
		return filepath.Abs(cmd.Package)
	}
	return extensionFolder(cmd.agentFolder)
}

// extensionFolder is where omp looks for extensions of its own accord.
func extensionFolder(f agentFolder) (string, error) {
	dir, err := f.path()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "extensions", "a2mcp"), nil
}

func summary(dir string, changed []string) string {
	if len(changed) == 0 {
		return "a2mcp " + version() + " is in " + dir + " already; nothing was changed"
	}
	return "a2mcp " + version() + " is in " + dir + "; written: " + strings.Join(changed, ", ")
}

// install makes a folder hold the extension and this binary, and reports what had
// to be written. It may be called again and again. A running sidecar keeps the
// binary that it was started from.
func install(dir string) (changed []string, err error) {
	switch ours, err := isOurs(dir); {
	case err != nil:
		return nil, err
	case !ours:
		return nil, errors.New("it holds something that is not a2mcp; move that away first")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	wanted, err := wantedFiles()
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		mode := os.FileMode(0o644)
		if name == binaryName() {
			mode = 0o755
		}
		wrote, err := writeIfOther(filepath.Join(dir, name), wanted[name], mode)
		if err != nil {
			return changed, err
		}
		if wrote {
			changed = append(changed, name)
		}
	}
	return changed, removeOthers(dir, wanted)
}

// wantedFiles is what belongs into the folder, by name.
func wantedFiles() (map[string][]byte, error) {
	wanted := map[string][]byte{}
	entries, err := fs.ReadDir(extension.Files, ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if wanted[entry.Name()], err = extension.Files.ReadFile(entry.Name()); err != nil {
			return nil, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	wanted[binaryName()], err = os.ReadFile(self)
	return wanted, err
}

func binaryName() string {
	if runtime.GOOS == "windows" {
		return "a2mcp.exe"
	}
	return "a2mcp"
}

// isOurs says whether a folder is missing, empty or an a2mcp package.
func isOurs(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	case len(entries) == 0:
		return true, nil
	}
	data, err := os.ReadFile(filepath.Join(dir, "package.json"))
	var manifest struct{ Name string }
	return err == nil && json.Unmarshal(data, &manifest) == nil && manifest.Name == "a2mcp", nil
}

// writeIfOther writes a file beside its place and moves it there, unless it is
// the same already.
func writeIfOther(path string, data []byte, mode os.FileMode) (wrote bool, err error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() == int64(len(data)) && (runtime.GOOS == "windows" || info.Mode().Perm() == mode) {
		if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
			return false, nil
		}
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".a2mcp-*")
	if err != nil {
		return false, err
	}
	defer os.Remove(file.Name()) // gone already where all went well
	_, err = file.Write(data)
	if err := errors.Join(err, file.Chmod(mode), file.Close()); err != nil {
		return false, err
	}
	makeWay(path)
	return true, os.Rename(file.Name(), path)
}

// removeOthers takes away modules of an earlier version, which omp would not load
// but a reader would take for ours.
func removeOthers(dir string, wanted map[string][]byte) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		_, keep := wanted[entry.Name()]
		if !keep && (strings.HasSuffix(entry.Name(), ".ts") || strings.HasPrefix(entry.Name(), ".a2mcp-") || strings.HasSuffix(entry.Name(), ".old")) {
			_ = os.Remove(filepath.Join(dir, entry.Name())) // one that is still running goes the next time
		}
	}
	return nil
}

// uninstallCmd takes them away again.
type uninstallCmd struct {
	agentFolder
}

// Run is a2mcp uninstall.
func (cmd uninstallCmd) Run() error {
	dir, err := extensionFolder(cmd.agentFolder)
	if err != nil {
		return report(err)
	}
	switch ours, err := isOurs(dir); {
	case err != nil:
		return report(failed(1, "looking at %s: %v", dir, err))
	case !ours:
		return report(failed(1, "%s is not a2mcp's; it was left alone", dir))
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(os.Stdout, "a2mcp is not installed in %s\n", dir)
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return report(failed(1, "%v; end omp first", err))
	}
	agent := filepath.Dir(filepath.Dir(dir))
	fmt.Fprintf(os.Stdout, "a2mcp is gone from %s; a running omp keeps it until it ends\n", dir)
	fmt.Fprintf(os.Stdout, "left alone: %s and %s\n", filepath.Join(agent, "a2mcp.json"), filepath.Join(agent, "a2mcp.log"))
	return nil
}
