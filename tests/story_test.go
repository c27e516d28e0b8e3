package tests

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
)

// A story is one file of testdata/replay: what goes into a bridge, line by line,
// and what has to come out of it. The comment of the archive says what it shows
// and which numbers of the contract it holds. Its files:
//
//	story    the script
//	config   a2mcp.json before the start; without it one with a fixed token,
//	         "none" for no file at all
//	env      NAME=value lines that the bridge sees
//	audit    every record of a2mcp.log after the end, oldest first
//	stderr   every line the bridge said of itself
//
// The script is made of inputs and, under each, the outputs it brings about.
// What belongs to a line stands indented under it. Inputs:
//
//	> host JSON           a line of the host
//	> hostraw TEXT        a line of the host that need not be JSON; quoted
//	> hello               the usual hello; what it brings about is not shown
//	> up                  the usual hello and session_start; nothing shown either
//	> command ARGS        the operator types /a2mcp ARGS
//	> client NAME         initialize, not shown; NAME's later requests carry the
//	                      session
//	> http NAME METHOD PATH
//	> post NAME JSON      POST / with that body
//	> drop NAME           NAME cuts its connection
//	> dial NAME           NAME tries to connect: "open" or "refused"
//	> mains N             the host has N main sessions
//	> llm JSON            the llm part of host_state
//	> hoststate off       host_state stays unanswered until "on"
//	> hostdies            the process of the host is gone, its pipe is not
//	> edit config         the operator writes a2mcp.json: the lines under it
//	> remove PATH         a file in the agent's folder is removed
//	> show PATH           mode and content of a file in the agent's folder
//	> sleep 24h           time passes
//	> eof                 the host's end of input
//	> again               the sidecar ends, and the host starts another one
//
// NAME is a caller; NAME.2 is another connection of the same one. Under http
// stand header lines and then the body. Authorization and session are added
// unless they are named; "-" as value leaves a header out. Outputs:
//
//	< host JSON           a line to the host, host_state aside
//	< http NAME STATUS …  a response
//	< dial NAME open      what dial found
//	< file …              what show found
//	< exit N              the bridge ended
//
// In inputs as in outputs $TOKEN is the token of the config ($TOKEN2 the one that
// was made after it), <uuid1>, <port1> and <s1> the first UUID, port and
// sidecar's request that came out, <taken1> a port that somebody else has,
// <forbidden1> one that may not be bound, <dir> the agent's folder, <x*200> two
// hundred x. Times are <ts> and <ms>.
type story struct {
	path    string
	archive *txtar.Archive
	steps   []step
}

// step is an input and what it brings about.
type step struct {
	lead  []string // empty lines and # remarks before it
	line  int
	verb  string
	args  string
	body  []string // lines under it, without their indent
	input []string // as they stand in the file
	want  []output
}

// output is one thing that came out, in the shape it has in a story.
type output struct {
	stream string // host, http NAME, file or exit: each has an order of its own
	text   string // lines, without the "< "
}

func readStory(path string) (*story, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	st := &story{path: path, archive: txtar.Parse(data)}
	script := strings.TrimRight(st.file("story"), "\n")
	if script == "" {
		return nil, fmt.Errorf("%s: there is no file named story", path)
	}
	var lead []string
	for i, line := range strings.Split(script, "\n") {
		last := len(st.steps) - 1
		switch {
		case line == "", strings.HasPrefix(line, "#"):
			lead = append(lead, line)
		case strings.HasPrefix(line, "> "):
			verb, args, _ := strings.Cut(line[2:], " ")
			st.steps = append(st.steps, step{lead: lead, line: i + 1, verb: verb, args: args, input: []string{line}})
			lead = nil
		case last < 0 || len(lead) > 0:
			return nil, fmt.Errorf("%s: line %d of the story belongs to no input", path, i+1)
		case strings.HasPrefix(line, "< "):
			st.steps[last].want = append(st.steps[last].want, output{stream: streamOf(line[2:]), text: line[2:]})
		case !strings.HasPrefix(line, "  "):
			return nil, fmt.Errorf("%s: line %d of the story is neither input nor output nor indented", path, i+1)
		default:
			st.steps[last].under(line)
		}
	}
	return st, nil
}

// under takes an indented line: it belongs to the last output, or to the input
// if there is none yet.
func (s *step) under(line string) {
	if n := len(s.want); n > 0 {
		s.want[n-1].text += "\n" + line
		return
	}
	s.body = append(s.body, line[2:])
	s.input = append(s.input, line)
}

func streamOf(text string) string {
	fields := strings.Fields(text)
	if len(fields) > 1 && fields[0] == "http" {
		return "http " + fields[1]
	}
	return fields[0]
}

// file returns the content of a file of the archive, "" if it is not there.
func (st *story) file(name string) string {
	for _, f := range st.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// onlyInMemory says that a story needs fake time or a fake system. The comment
// may say so too ("only in memory").
func (st *story) onlyInMemory() bool {
	memory := strings.Contains(string(st.archive.Comment), "only in memory") ||
		strings.Contains(string(st.archive.Comment)+st.file("config"), "<forbidden1>")
	for _, s := range st.steps {
		memory = memory || slices.Contains([]string{"sleep", "hoststate", "hostdies"}, s.verb)
	}
	return memory
}

// script writes steps as they stand in a file.
func script(steps []step, got [][]output) string {
	var b strings.Builder
	for i, s := range steps {
		for _, line := range append(s.lead, s.input...) {
			b.WriteString(line + "\n")
		}
		for _, out := range got[i] {
			b.WriteString("< " + out.text + "\n")
		}
	}
	return b.String()
}

// rewrite puts what came out into the file.
func (st *story) rewrite(got map[string]string) error {
	for _, name := range []string{"story", "audit", "stderr"} {
		at := slices.IndexFunc(st.archive.Files, func(f txtar.File) bool { return f.Name == name })
		switch {
		case at >= 0 && got[name] == "":
			st.archive.Files = slices.Delete(st.archive.Files, at, at+1)
		case at >= 0:
			st.archive.Files[at].Data = []byte(got[name])
		case got[name] != "":
			st.archive.Files = append(st.archive.Files, txtar.File{Name: name, Data: []byte(got[name])})
		}
	}
	return os.WriteFile(st.path, txtar.Format(st.archive), 0o644)
}
