package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shown returns the examples of a kind, which is the info string of their fence,
// on a page.
func shown(t *testing.T, page, kind string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range regexp.MustCompile("(?ms)^```"+kind+"\n(.*?)^```$").FindAllStringSubmatch(string(data), -1) {
		texts = append(texts, m[1])
	}
	if len(texts) == 0 {
		t.Fatalf("%s has no example of the kind %q", page, kind)
	}
	return texts
}

// shell runs lines of an example in a checkout, as the operator of this place.
func (p *place) shell(text string, env ...string) string {
	p.t.Helper()
	// run.sh has run make build, and the binary is in use.
	text = strings.ReplaceAll(text, "make build && ", "")
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", text)
	cmd.Env, cmd.Dir = append(p.env[:len(p.env):len(p.env)], env...), filepath.Join("..", "..")
	out, err := cmd.CombinedOutput()
	if err != nil {
		p.t.Errorf("%s\n%v\n%s", text, err, out)
	}
	return string(out)
}

// TestGuide: what README shows of omp, as it stands there: installing, starting,
// the doctor, and switching inference off.
func TestGuide(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	p.write(filepath.Join(p.agent, "config.yml"), "setupVersion: 999\n")
	if err := os.RemoveAll(filepath.Join(p.agent, "extensions")); err != nil {
		t.Fatal(err)
	}
	examples := shown(t, "README.md", "sh omp")
	if len(examples) != 2 {
		t.Fatalf("%d examples: %q", len(examples), examples)
	}
	around := regexp.MustCompile(`(?m)^omp .*\n`).Split(examples[0], 2)
	if len(around) != 2 {
		t.Fatalf("no line starts omp:\n%s", examples[0])
	}
	p.shell(around[0])
	tui := p.terminal()
	tui.shows(`a2mcp serves at`)
	b := p.bridge().connect()
	if out := p.shell(around[1], "A2MCP_URL=http://127.0.0.1:1/", "A2MCP_TOKEN=of-the-demo"); !strings.Contains(out, "ok    call ") {
		t.Errorf("the doctor says\n%s", out)
	}
	if out := p.shell(examples[1], "A2MCP_URL="+b.URL, "A2MCP_TOKEN="+b.token); !strings.Contains(out, `{"enabled":false,"denied":0,"degraded":false}`) {
		t.Errorf("the switch says\n%s", out)
	}
}
