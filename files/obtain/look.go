package obtain

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// isPath says that a configured value is a path and no name to look for. `C:dufs` has no separator, but
// leads to the current folder of a drive all the same.
func isPath(configured string) bool {
	return strings.ContainsAny(configured, `/\`) || filepath.VolumeName(configured) != ""
}

// executable returns the absolute path of what the operator named, if that can be run. On Windows the
// extension may be left out, as on a command line.
func executable(configured string) (string, error) {
	path := configured
	if rest, ok := strings.CutPrefix(filepath.ToSlash(path), "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(home, rest)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	found, err := exec.LookPath(path)
	switch _, statErr := os.Stat(path); {
	case err == nil:
		return found, nil
	case errors.Is(statErr, os.ErrNotExist):
		return "", errors.New("there is no such file")
	case statErr != nil:
		return "", errors.Unwrap(statErr)
	}
	return "", errors.New("it is not an executable file")
}

// onPath looks for name in the folders of PATH, "" if none has it. Relative ones are passed over: they
// lead into the current folder, which is the project's, not the operator's. exec.LookPath alone would
// stop at the first of them. PATHEXT counts on Windows.
func onPath(name string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found
		}
	}
	return ""
}

// DefaultDataDir is where binaries are installed: a folder of the bridge's own in the user's data
// folder. "" means that home and the environment give none.
func DefaultDataDir(home string) string {
	return dataDir(runtime.GOOS, home, os.Getenv)
}

func dataDir(goos, home string, getenv func(string) string) string {
	var data, usual string
	switch goos {
	case "windows":
		data, usual = getenv("LOCALAPPDATA"), "AppData/Local"
	case "darwin":
		usual = "Library/Application Support"
	default:
		data, usual = getenv("XDG_DATA_HOME"), ".local/share"
	}
	if !filepath.IsAbs(data) { // the XDG specification wants a relative one ignored
		if home == "" {
			return ""
		}
		data = filepath.Join(home, filepath.FromSlash(usual))
	}
	return filepath.Join(data, "a2mcp", "bin")
}
