//go:build unix

package tests

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// example is a fenced block of a page. The first word of its info string is the
// language; a second one says what trying it takes, and so which test tries it.
type example struct{ page, language, needs, text string }

// kind is what the info string says.
func (e example) kind() string { return strings.TrimSpace(e.language + " " + e.needs) }

// runners are what TestGuides runs, kind by kind: what takes no tool but a shell, curl
// and Python.
var runners = map[string]func(*reader, *testing.T, example){
	"sh": (*reader).script, "console": (*reader).session, "sh make": (*reader).targets,
}

// triedIn is which file of another module runs the examples of a kind.
var triedIn = map[string]string{
	"sh npm": "clients/guide_test.go", "js npm": "clients/guide_test.go", "json npm": "clients/guide_test.go",
	"sh ssh": "clients/guide_test.go", "python": "clients/guide_test.go", "json claude": "clients/guide_test.go",
	"sh omp": "host/guide_test.go", "json omp": "host/client_test.go",
}

var fence = regexp.MustCompile("(?ms)^```([^`\n]*)\n(.*?)^```$")

// prompt begins a command in an example of a terminal.
var prompt = regexp.MustCompile(`(?m)^\$ `)

// pages calls f for every page of the project.
func pages(t *testing.T, f func(page, text string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && path != ".."):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil {
			f(path, string(data))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// examples calls f for every example of every page. Blocks without a language are
// pictures and messages, not examples.
func examples(t *testing.T, f func(example)) {
	t.Helper()
	pages(t, func(page, text string) {
		for _, m := range fence.FindAllStringSubmatch(text, -1) {
			if language, needs, _ := strings.Cut(m[1], " "); language != "" {
				f(example{page, language, needs, m[2]})
			}
		}
	})
}

// TestExamplesAreTried: no example of a page without a test that runs it.
func TestExamplesAreTried(t *testing.T) {
	seen := map[string]int{}
	examples(t, func(e example) {
		seen[e.page]++
		file, known := triedIn[e.kind()]
		switch data, err := os.ReadFile(file); {
		case runners[e.kind()] != nil:
		case !known:
			t.Errorf("%s: no test runs an example of the kind %q:\n%s", e.page, e.kind(), e.text)
		case err != nil || !strings.Contains(string(data), `"`+e.kind()+`"`):
			t.Errorf("%s does not run examples of the kind %q (%v)", file, e.kind(), err)
		}
	})
	if seen["../README.md"] < 5 || seen["../httpfront/CLIENTS.md"] < 10 {
		t.Errorf("examples found: %v", seen)
	}
}

// TestLinks: what a page of the project points to within it is there.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	seen := 0
	pages(t, func(page, text string) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			seen++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), filepath.FromSlash(m[1]))); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	})
	if seen < 10 {
		t.Errorf("%d links", seen)
	}
}

// TestCommandsInProse: what a sentence names is a command that there is, with flags
// that it has.
func TestCommandsInProse(t *testing.T) {
	command := regexp.MustCompile("`(?:bin/)?a2mcp ([^`:]+)`")
	seen := 0
	pages(t, func(page, text string) {
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			seen++
			words, _, _ := strings.Cut(m[1], "|") // what it is piped into is another program
			if out, err := exec.Command(binary(t), append(strings.Fields(words), "--help")...).CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", page, m[0], err, out)
			}
		}
	})
	if seen < 10 {
		t.Errorf("%d commands", seen)
	}
}

// reader is somebody who does what a page says, with what the pages presume: a checkout
// with bin/a2mcp, a home folder, a demo that is running, and some files to move.
type reader struct {
	demo *demo
	dir  string
	env  []string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	home, dir := t.TempDir(), t.TempDir()
	d := startDemo(t, "--agent-dir", filepath.Join(home, ".cache/a2mcp/demo"))
	waitFor(t, func() bool { return strings.Contains(d.out.String(), "Calls show up here") })
	shown := regexp.MustCompile(`export A2MCP_URL=(\S+) A2MCP_TOKEN=(\S+)`).FindStringSubmatch(d.out.String())
	d.url, d.token = shown[1], shown[2]
	for name, text := range map[string]string{"big.iso": "big", "outbox/report.pdf": "a report"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "bin"), 0o755), os.Symlink(binary(t), filepath.Join(dir, "bin", "a2mcp")),
		os.Symlink(filepath.Join(root, "cmd"), filepath.Join(dir, "cmd"))); err != nil {
		t.Fatal(err)
	}
	return &reader{d, dir, []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "A2MCP_URL=" + d.url, "A2MCP_TOKEN=" + d.token, "NO_PROXY=*"}}
}

// TestGuides runs the examples that have a runner, page by page, in order (C1).
func TestGuides(t *testing.T) {
	byPage := map[string][]example{}
	examples(t, func(e example) {
		if runners[e.kind()] != nil {
			byPage[e.page] = append(byPage[e.page], e)
		}
	})
	for page, list := range byPage {
		t.Run(page, func(t *testing.T) {
			r := newReader(t)
			for _, e := range list {
				runners[e.kind()](r, t, e)
			}
		})
	}
	if len(byPage) < 2 {
		t.Errorf("%d pages", len(byPage))
	}
}

// shell runs a script and returns what it prints.
func (r *reader) shell(t *testing.T, text string) string {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	// The line that the demo printed stands in the environment.
	text = regexp.MustCompile(`(?m)^export A2MCP_URL=.*$`).ReplaceAllString(text, "")
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", text)
	cmd.Dir, cmd.Env = r.dir, r.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s\n%v\n%s", text, err, out)
	}
	if strings.Contains(string(out), `"error"`) || strings.Contains(string(out), `"isError":true`) || strings.Contains(string(out), r.demo.token) {
		t.Errorf("%s\nprinted:\n%s", text, out)
	}
	return string(out)
}

func (r *reader) script(t *testing.T, e example) { r.shell(t, e.text) }

// session runs what stands behind the prompts of a terminal, and compares.
func (r *reader) session(t *testing.T, e example) {
	for _, step := range prompt.Split(e.text, -1)[1:] {
		command, want, _ := strings.Cut(step, "\n")
		if got := r.shell(t, command); want != "" && !likeness(want).MatchString(got) {
			t.Errorf("%s: %s\nprints:\n%s\nnot:\n%s", e.page, command, got, want)
		}
	}
}

// targets asks make whether it has them; .ci/run and first-call.sh make them.
func (r *reader) targets(t *testing.T, e example) {
	for line := range strings.Lines(e.text) {
		command, _, _ := strings.Cut(line, "#")
		if out, err := exec.Command("make", append([]string{"-C", "..", "-n"}, strings.Fields(command)[1:]...)...).CombinedOutput(); err != nil {
			t.Errorf("%s: %s: %v\n%s", e.page, line, err, out)
		}
	}
}

// likeness is the output of an example: … stands for anything, a line of it for
// any lines; numbers, ids and the widths of columns may be others.
func likeness(text string) *regexp.Regexp {
	re := regexp.QuoteMeta(strings.TrimSpace(text))
	re = regexp.MustCompile(`\b[0-9a-f]{8}\b`).ReplaceAllString(re, `[0-9a-f]{8}`)
	re = regexp.MustCompile(`[0-9]+(\\\.[0-9]+)?(ms|s)\b`).ReplaceAllString(re, `[0-9.]+m?s`)
	re = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}`).ReplaceAllString(re, `[-0-9]+ [:0-9]+`)
	re = regexp.MustCompile(` +`).ReplaceAllString(re, ` +`)
	return regexp.MustCompile("(?s)" + strings.ReplaceAll(re, "…", ".*"))
}
