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
	fmt.Fprintf(stdout, "%s\n%s\n", summary(dir, changed), next)
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
	if err := hasOwner(dir); err != nil {
		return nil, err
	}
	ours, earlier, err := isOurs(dir)
	switch {
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
	// The manifest first: by it an install that broke off is known again.
	for _, name := range append([]string{manifest}, slices.Sorted(maps.Keys(wanted))...) {
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
	removeStale(dir, earlier, wanted)
	return changed, nil
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

// manifest says what a folder is and what belongs to it.
const manifest = "package.json"

// hasOwner says why a folder is another program's to write: it is a link, be there
// something behind it or not, or a checkout of git.
func hasOwner(dir string) error {
	if to, err := os.Readlink(dir); err == nil {
		return fmt.Errorf("it is a link to %s, which omp follows and a2mcp leaves alone; remove the link first", to)
	}
	if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
		return errors.New("it is a git checkout, which a2mcp leaves alone; move that away first")
	}
	return nil
}

// isOurs says whether a folder is missing, empty or an a2mcp package, and which
// files that package came with.
func isOurs(dir string) (ours bool, files []string, err error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil, nil
	case err != nil:
		return false, nil, err
	case len(entries) == 0:
		return true, nil, nil
	}
	data, err := os.ReadFile(filepath.Join(dir, manifest))
	var is struct {
		Name  string
		Files []string
	}
	if err != nil || json.Unmarshal(data, &is) != nil || is.Name != "a2mcp" {
		return false, nil, nil
	}
	return true, is.Files, nil
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

// removeStale takes away what an earlier version came with and this one does not,
// and what an install that broke off left. Nobody else's files are touched.
func removeStale(dir string, earlier []string, wanted map[string][]byte) {
	stale := []string{filepath.Join(dir, binaryName()+".old")}
	entries, _ := os.ReadDir(dir) // what cannot be looked at has nothing stale
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".a2mcp-") {
			stale = append(stale, filepath.Join(dir, e.Name()))
		}
	}
	for _, name := range earlier {
		if _, keep := wanted[name]; !keep && filepath.Base(name) == name {
			stale = append(stale, filepath.Join(dir, name))
		}
	}
	for _, path := range stale {
		_ = os.Remove(path) // a binary that is still running goes the next time
	}
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
	if err := hasOwner(dir); err != nil {
		return report(failed(1, "uninstalling from %s: %v", dir, err))
	}
	ours, files, err := isOurs(dir)
	switch {
	case err != nil:
		return report(failed(1, "looking at %s: %v", dir, err))
	case !ours:
		return report(failed(1, "%s is not a2mcp's; it was left alone", dir))
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(stdout, "a2mcp is not installed in %s\n", dir)
		return nil
	}
	left, err := uninstall(dir, files)
	if err != nil {
		return report(failed(1, "%v; end omp first", err))
	}
	agent := filepath.Dir(filepath.Dir(dir))
	fmt.Fprintf(stdout, "a2mcp is gone from %s; a running omp keeps it until it ends\n", dir)
	for _, path := range append(left, filepath.Join(agent, "a2mcp.json"), filepath.Join(agent, "a2mcp.log")) {
		fmt.Fprintf(stdout, "left alone: %s\n", printable(path))
	}
	return nil
}

// uninstall removes what install wrote into a folder: the files that the package
// there came with, the binary, and last the manifest, by which an uninstall that
// broke off can be done again. It returns what is in the folder besides; an empty
// folder goes too.
func uninstall(dir string, files []string) (left []string, err error) {
	removeStale(dir, files, nil)
	for _, name := range []string{binaryName(), manifest} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return nil, os.Remove(dir)
	}
	for _, entry := range entries {
		left = append(left, filepath.Join(dir, entry.Name()))
	}
	return left, nil
}
