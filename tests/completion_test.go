//go:build unix

package tests

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shellUser is somebody whose shell completes a command line; the home is empty.
type shellUser struct {
	home string
	env  []string
}

func newShellUser(t *testing.T, env ...string) shellUser {
	home := t.TempDir()
	return shellUser{home: home, env: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}, env...)}
}

// complete returns what the binary prints for a line with the cursor at its end or at
// |, the candidates in order of their names. It may print nothing else.
func (u shellUser) complete(t *testing.T, line string, args ...string) string {
	t.Helper()
	var out, stderr bytes.Buffer
	cmd := exec.Command(binary(t), args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = u.home, &out, &stderr
	before, after, _ := strings.Cut(line, "|")
	cmd.Env = append(slices.Clone(u.env), "COMP_LINE="+before+after, "COMP_POINT="+strconv.Itoa(len(before)))
	began := time.Now()
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Errorf("%q: %v, stderr %q", line, err, stderr.String())
	}
	if took := time.Since(began); took > 10*time.Second { // one, but for the load
		t.Errorf("%q took %v", line, took)
	}
	if made, err := os.ReadDir(u.home); err != nil || len(made) > 0 {
		t.Errorf("%q left %v in the home folder, %v", line, made, err)
	}
	if out.Len() > 0 && !strings.HasSuffix(out.String(), "\n") {
		t.Errorf("%q: the last of %q has no end", line, out.String())
	}
	candidates := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	slices.Sort(candidates)
	return strings.Join(candidates, " ")
}

// What is known without a bridge, and nothing where a file is meant: the shell then
// offers files.
func TestCompletionOfTheCommandLine(t *testing.T) {
	u := newShellUser(t)
	for _, c := range []struct{ line, want string }{
		{"a2mcp ", "audit call completion config demo doctor install sidecar tools uninstall version"},
		{"a2mcp co", "completion config"},
		{"/usr/local/bin/a2mcp config ", "check schema"},
		{"a2mcp audit --p", "--pending --profile"},
		{"a2mcp call -", "--agent-dir --help --json --out --profile --timeout --token-file --url --version -h"},
		{"a2mcp completion ", "bash fish zsh"},
		{"a2mcp completion -c f", "fish"},
		{"a2mcp call --token-file ", ""},
		{"a2mcp audit --file /", ""},
		{"a2mcp install --agent-dir ", ""},
		{"a2mcp call --out ", ""},
		{"a2mcp config check ", ""},
		{"a2mcp version ", ""},
		{"a2mcp nonsense", ""},
		{"a2mcp nonsense ", ""},
		{"a2mcp co|nonsense version", "completion config"},
		// No bridge runs.
		{"a2mcp call ", ""},
		{"a2mcp call --help ", ""},
		{"a2mcp call --timeout soon ", ""},
		{"a2mcp version x ", ""},
		{"a2mcp config check -", "--agent-dir --help --profile --version -h"},
	} {
		for _, args := range [][]string{nil, {"a2mcp", "word", "previous"}} { // as zsh and fish start it; as bash does
			if got := u.complete(t, c.line, args...); got != c.want {
				t.Errorf("%q %v: %q, want %q", c.line, args, got, c.want)
			}
		}
	}
}

// The tools of the bridge that the flags, the environment or the agent folder name.
// Nothing is left of the question: no session, no record.
func TestCompletionOfTools(t *testing.T) {
	d := startDemo(t, "--json")
	waitFor(t, func() bool { return strings.Contains(d.out.String(), "\n") })
	d.url, _ = d.runningAt()
	const all = "bash grep read write xfer_share xfer_status xfer_stop"
	byFolder := newShellUser(t, "PI_CODING_AGENT_DIR="+d.dir)
	for _, c := range []struct {
		user       shellUser
		line, want string
	}{
		{byFolder, "a2mcp call ", all},
		{byFolder, "a2mcp call xfer_st", "xfer_status xfer_stop"},
		{byFolder, "a2mcp call --timeout 5s b", "bash"},
		{byFolder, "a2mcp call bash ", ""},
		{newShellUser(t), "a2mcp call --agent-dir " + d.dir + " ", all},
		{newShellUser(t), "a2mcp call --agent-dir=" + d.dir + " g", "grep"},
		{newShellUser(t, "A2MCP_URL="+d.url, "PI_CODING_AGENT_DIR="+d.dir), "a2mcp call w", "write"},
		{newShellUser(t, "A2MCP_URL="+d.url, "A2MCP_TOKEN=wrong"), "a2mcp call ", ""},
		{newShellUser(t, "A2MCP_URL=nonsense", "A2MCP_TOKEN=wrong"), "a2mcp call ", ""},
	} {
		got := c.user.complete(t, c.line)
		for try := 0; try < 5 && got != c.want; try++ { // a loaded machine may not answer within the second that there is
			got = c.user.complete(t, c.line)
		}
		if got != c.want {
			t.Errorf("%v %q: %q, want %q", c.user.env[2:], c.line, got, c.want)
		}
	}
	if log := d.log(); len(log) > 0 {
		t.Errorf("the log says\n%s", log)
	}
	if _, err := io.WriteString(d.stdin, "/a2mcp\n"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return strings.Contains(d.stderr.String(), "sessions=") })
	if !strings.Contains(d.stderr.String(), "sessions=0") {
		t.Errorf("a session is left\n%s", d.stderr)
	}
}

// F4: a name that a shell would not take as a word is no candidate, and a bridge
// that does not answer keeps nobody waiting.
func TestCompletionDoesNotTrustTheBridge(t *testing.T) {
	end := make(chan bool)
	bridge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/slow" && !bytes.Contains(body, []byte("initialize")) {
			<-end
		}
		w.Header().Set("Mcp-Session-Id", "s")
		odd := map[string]string{"/numbers": `,{"name":7}`, "/more": `]} {`}[r.URL.Path]
		fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"good.one"},{"name":"x;reboot"},{"name":"$(id)"},`+
			`{"name":"-rf"},{"name":"two\nlines"},{"name":"end\n"},{"name":"\u001b[31m"},{"name":""},{"name":"é"},{"name":"good-2"}`+odd+`]}}`)
	}))
	defer bridge.Close()
	defer close(end)
	for path, want := range map[string]string{"/": "good-2 good.one", "/numbers": "", "/more": "", "/slow": ""} {
		u := newShellUser(t, "A2MCP_URL="+bridge.URL+path, "A2MCP_TOKEN=secret")
		if got := u.complete(t, "a2mcp call "); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// R01: a COMP_LINE in the environment of a host or a user makes a completion of no
// command, nor of what the command starts.
func TestCompletionTakesNoCommandOver(t *testing.T) {
	t.Setenv("COMP_LINE", "a2mcp ")
	t.Setenv("COMP_POINT", "6")
	d := startJSON(t) // starts its sidecar with this environment
	if blocks, _ := d.call(t, d.session(t), "echo", `{"text":"served"}`); blocks[0].Text != "served" {
		t.Errorf("echo: %+v", blocks)
	}
	for _, c := range []struct{ args, want string }{
		{"version", "a2mcp test "},
		{"nonsense", "a2mcp --help shows what there is"},
		{"--help", "Usage: a2mcp "},
		{"call --agent-dir " + d.dir + " echo text=called", "called\n"},
		{"tools --agent-dir " + d.dir, "slow_exclusive"}, // three arguments, as bash gives
	} {
		out, err := exec.Command(binary(t), strings.Fields(c.args)...).CombinedOutput()
		if (err != nil) != (c.args == "nonsense") || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v\n%s", c.args, err, out)
		}
	}
}

// The line that is printed, in a real bash: what it registers, asked as bash asks.
func TestCompletionInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not here")
	}
	bin := t.TempDir()
	if err := os.Symlink(binary(t), filepath.Join(bin, "a2mcp")); err != nil {
		t.Fatal(err)
	}
	u := newShellUser(t)
	cmd := exec.Command(bash, "--norc", "--noprofile", "-c", `
eval "$(SHELL=/bin/sh a2mcp completion | sed -n 3p)"
spec=$(complete -p a2mcp)
echo "${spec% -C *}"
command=${spec#*-C } && command=${command% a2mcp}
ask() { COMP_LINE=$1 COMP_POINT=${#1} eval "$command a2mcp '${1##* }' a2mcp" | sort | tr '\n' ' '; echo; }
ask 'a2mcp co'
ask 'a2mcp completion '
ask 'a2mcp call --token-file to'
`)
	cmd.Dir = u.home
	cmd.Env = append([]string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}, u.env[1:]...)
	out, err := cmd.CombinedOutput()
	if want := "complete -o bashdefault -o default\ncompletion config \nbash fish zsh \n\n"; err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}

// The line for fish, in a real one, which offers files beside the candidates.
func TestCompletionInFish(t *testing.T) {
	fish, err := exec.LookPath("fish")
	if err != nil {
		t.Skip("fish is not here")
	}
	u := newShellUser(t)
	cmd := exec.Command(fish, "--no-config", "-c", binary(t)+` completion -c fish | source
complete -C "a2mcp co"; complete -C "a2mcp completion "; complete -C "a2mcp call --token-file fi"`)
	if err := os.WriteFile(filepath.Join(u.home, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd.Dir, cmd.Env = u.home, u.env
	out, err := cmd.CombinedOutput()
	if want := "completion\nconfig\nbash\nfile\nfish\nzsh\nfile\n"; err != nil || string(out) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out, want)
	}
}

// What is printed for a shell; a path that would need quotes there is refused.
func TestCompletionCode(t *testing.T) {
	odd := filepath.Join(t.TempDir(), "a b", "a2mcp")
	if err := os.Mkdir(filepath.Dir(odd), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(binary(t), odd); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ bin, shell, args, want string }{
		{binary(t), "/usr/bin/fish", "completion", "put it into ~/.config/fish/config.fish to have that in every shell:\n\n" + binary(t) + " completion -c fish | source\n"},
		{binary(t), "/bin/sh", "completion zsh", "below `autoload -Uz compinit && compinit`"},
		{binary(t), "/bin/sh", "completion -c", "complete -o default -o bashdefault -C " + binary(t) + " a2mcp\n"},
		{binary(t), "/bin/sh", "completion -c zsh", "bashcompinit\ncomplete -o default "},
		{binary(t), "/bin/sh", "completion -c fish", "complete -c a2mcp -a "},
		{odd, "/bin/sh", "completion -c", "cannot stand in the code for a shell; put a2mcp where"},
	} {
		cmd := exec.Command(c.bin, strings.Fields(c.args)...)
		cmd.Env = []string{"PATH=/nowhere", "SHELL=" + c.shell}
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), c.want) {
			t.Errorf("%s in %s: %s\nwant %s", c.args, c.shell, out, c.want)
		}
	}
}
