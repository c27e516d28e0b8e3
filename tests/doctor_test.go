//go:build unix

package tests

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"
	"testing"

	"github.com/a2mcp/a2mcp/proto"
)

// TestDoctor: what a doctor says of a demo, by its agent folder, by its address alone
// (F5) and by another path of it (H1).
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
		{"another path", []string{"--agent-dir", d.dir, "--url", d.url + "mcp"}, `
ok +port +http://127.0.0.1:\d+/mcp answers
(?s:.*)
ok +share +a folder was shared, listed and closed
`},
	} {
		cmd := exec.Command(binary(t), append([]string{"doctor"}, c.args...)...)
		cmd.Env = append(os.Environ(), "A2MCP_TOKEN="+d.token)
		out, err := cmd.CombinedOutput()
		if err != nil || !regexp.MustCompile(c.want).MatchString("\n"+string(out)) {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
	}
}

// A doctor that is interrupted gives back its share and its session, also where it does
// not know yet whether it has a share.
func TestDoctorIsInterrupted(t *testing.T) {
	for _, where := range []string{"xfer_share", "/xfer/"} {
		held, gave := make(chan bool), make(chan string, 2)
		bridge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			name, _ := proto.Text(proto.Member(proto.Member(body, "params"), "name"))
			switch {
			case r.URL.Path == where || name == where:
				held <- true
				<-r.Context().Done()
			case r.Method == http.MethodDelete || name == "xfer_stop":
				gave <- r.Method + " " + name
			default:
				w.Header().Set(proto.SessionHeader, "session")
				result := `{"tools":[],"content":[{"text":"not exposed"}],"isError":` + strconv.FormatBool(name == "a2mcp_doctor") + `}`
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":`+result+`}`)
			}
		}))
		defer bridge.Close()
		cmd, stderr := startCaller(t, []string{"A2MCP_TOKEN=right"}, binary(t), "doctor", "--agent-dir", t.TempDir(), "--url", bridge.URL)
		<-held
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait() // the code is looked at
		if code := cmd.ProcessState.ExitCode(); code != 130 || stderr.String() != "a2mcp: interrupted\n" {
			t.Errorf("%s: exit %d, %s", where, code, stderr)
		}
		close(gave)
		if first, second := <-gave, <-gave; first != "POST xfer_stop" || second != "DELETE " {
			t.Errorf("%s: it gave back %q, %q", where, first, second)
		}
	}
}
