//go:build unix

package tests

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fakes are programs that log their arguments and do what the script counts on.
var fakes = map[string]string{
	"npm": `case $1 in prefix) mkdir -p "${npm_config_cache:-$HOME/.npm}/_logs" 2>/dev/null; echo "$NPM_PREFIX"; exit; esac
target=$NPM_PREFIX
while [ $# -gt 0 ]; do
  if [ "$1" = --prefix ]; then target=$2; fi
  shift
done
mkdir -p "$target/bin" && echo "$OMP_FAKE" >"$target/bin/omp" && chmod +x "$target/bin/omp"`,
	"bun": `case "$*" in "pm bin --global") echo "$HOME/.bun/bin"; exit; esac
mkdir -p "$HOME/.bun/bin" && echo "$OMP_FAKE" >"$HOME/.bun/bin/omp" && chmod +x "$HOME/.bun/bin/omp"`,
	"omp":    `echo omp/18.2.3`,
	"a2mcp":  ``,
	"go":     `mkdir -p bin && echo '#!/bin/sh' >bin/a2mcp && chmod +x bin/a2mcp`,
	"broken": `exit 3`,
}

// machine is a computer with nothing but a shell, what POSIX puts beside it, and
// the programs it was given. Every path has a blank in it.
type machine struct {
	t                        *testing.T
	shell                    []string
	home, bin, prefix, agent string
	script, log              string
	env                      []string
}

// onEveryShell tells a story on a new machine for each POSIX shell at hand.
func onEveryShell(t *testing.T, programs string, story func(m *machine)) {
	t.Helper()
	seen := map[string]bool{}
	for _, shell := range [][]string{{"dash"}, {"bash", "--posix"}, {"busybox", "sh"}, {"sh"}} {
		path, err := exec.LookPath(shell[0])
		if err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(path) // sh is one of the others, mostly
		if err != nil {
			t.Fatal(err)
		}
		if seen[real] {
			continue
		}
		seen[real] = true
		t.Run(shell[0], func(t *testing.T) {
			t.Parallel()
			story(newMachine(t, append([]string{path}, shell[1:]...), programs))
		})
	}
}

// onMachine tells a story beside others, on a new machine with the shell of this one.
func onMachine(t *testing.T, name, programs string, story func(m *machine)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		t.Parallel()
		story(newMachine(t, []string{"/bin/sh"}, programs))
	})
}

func newMachine(t *testing.T, shell []string, programs string) *machine {
	t.Helper()
	root := filepath.Join(t.TempDir(), "a place")
	m := &machine{
		t: t, shell: shell,
		home: filepath.Join(root, "a home"), bin: filepath.Join(root, "bin"), prefix: filepath.Join(root, "npm prefix"),
		script: filepath.Join(root, "here", "setup.sh"), log: filepath.Join(root, "log"),
	}
	m.agent = filepath.Join(m.home, ".omp", "agent")
	m.env = []string{
		"PATH=" + m.bin, "HOME=" + m.home, "NPM_PREFIX=" + m.prefix, "LOG=" + m.log,
		"OMP_FAKE=#!/bin/sh\necho omp/18.2.3",
	}
	m.mkdir(m.home)
	m.mkdir(m.bin)
	for _, tool := range []string{"cat", "chmod", "dirname", "grep", "mkdir"} {
		path, err := exec.LookPath(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(m.bin, tool)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range strings.Fields(programs) {
		m.program(filepath.Join(m.bin, name), name)
	}
	m.copyScript(m.script)
	return m
}

func (m *machine) mkdir(dir string) {
	m.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) write(path, text string, mode fs.FileMode) {
	m.t.Helper()
	m.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		m.t.Fatal(err)
	}
}

// program puts one of the fakes where it is wanted.
func (m *machine) program(path, fake string) {
	m.t.Helper()
	m.write(path, "#!/bin/sh\necho \"${0##*/} $*\" >>\"$LOG\"\n"+fakes[fake]+"\n", 0o755)
}

func (m *machine) copyScript(to string) {
	m.t.Helper()
	data, err := os.ReadFile("../cmd/setup/setup.sh")
	if err != nil {
		m.t.Fatal(err)
	}
	m.write(to, string(data), 0o755)
}

// run runs the script and wants an exit code and all of some texts.
func (m *machine) run(code int, args []string, want ...string) {
	m.t.Helper()
	argv := slices.Concat(m.shell[1:], []string{"-e", m.script}, args)
	cmd := exec.Command(m.shell[0], argv...)
	cmd.Env, cmd.Dir = m.env, m.home
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		m.t.Fatalf("exit code %d, want %d:\n%s", got, code, out)
	}
	for _, text := range want {
		if !strings.Contains(string(out), text) {
			m.t.Errorf("no %q in:\n%s", text, out)
		}
	}
}

// ran compares what the fakes were asked to do, but for questions.
func (m *machine) ran(want ...string) {
	m.t.Helper()
	data, err := os.ReadFile(m.log)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "npm prefix --global" && line != "bun pm bin --global" {
			got = append(got, line)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("what was run (-want +got):\n%s", diff)
	}
}

// hasPlaceholder wants the placeholder in a file that nobody else can read.
func (m *machine) hasPlaceholder(agent string) {
	m.t.Helper()
	path := filepath.Join(agent, "models.yml")
	data, err := os.ReadFile(path)
	if err != nil {
		m.t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "\n") // after the remark
	if diff := cmp.Diff(placeholder, text); diff != "" {
		m.t.Errorf("models.yml (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		m.t.Errorf("models.yml: %v %v", info.Mode(), err)
	}
}

func (m *machine) hasNo(path string) {
	m.t.Helper()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		m.t.Errorf("%s is there: %v", path, err)
	}
}

// tree lists what is below a folder; the log of the fakes comes last.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var all, log bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.Name() == "log" {
			fmt.Fprintln(&log, "log")
			return nil
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		changed := info.ModTime()
		if path == dir { // the log is in it
			changed = time.Time{}
		}
		fmt.Fprintln(&all, path, info.Mode(), changed)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String() + log.String()
}
