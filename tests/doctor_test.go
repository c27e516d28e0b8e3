//go:build unix

package tests

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// TestDoctor: what a doctor says of a demo, by its agent folder and by its address
// alone (F5).
func TestDoctor(t *testing.T) {
	d := startJSON(t)
	elsewhere := t.TempDir()
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"its own folder", []string{"--agent-dir", d.dir}, `
(?:-|ok) +host .*
- +extension +nothing in .*, but a bridge is running: it was linked as a plugin
ok +configuration .*a2mcp.json
ok +port +http://127.0.0.1:\d+/ answers
ok +token .*
ok +catalogue .*
ok +call .*
ok +audit +both records are in .*a2mcp.log
ok +share .*
(?:-|ok) +tunnel .*
$`},
		{"another's folder", []string{"--agent-dir", elsewhere, "--url", d.url}, `
- +extension +the bridge at \S+ is none that is running with the agent folder .*
- +configuration +the bridge at .*
ok +port .*
ok +token .*
ok +catalogue .*
ok +call .*
- +audit +the bridge at .*
ok +share `},
	} {
		cmd := exec.Command(binary(t), append([]string{"doctor"}, c.args...)...)
		cmd.Env = append(os.Environ(), "A2MCP_TOKEN="+d.token)
		out, err := cmd.CombinedOutput()
		if err != nil || !regexp.MustCompile(c.want).MatchString("\n"+string(out)) {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
	}
}
