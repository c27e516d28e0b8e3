package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/posener/complete"

	"github.com/a2mcp/a2mcp/audit"
	"github.com/a2mcp/a2mcp/proto"
)

// completionCmd prints what makes a shell complete this command line.
type completionCmd struct {
	Shell string `arg:"" optional:"" help:"bash, zsh or fish. Default: that of $$SHELL." enum:"bash,zsh,fish" default:"${shell}"`
	Code  bool   `short:"c" help:"Print the code for the shell to read, not how to make it read that."`
}

// Help is the long text of a2mcp completion --help.
func (completionCmd) Help() string {
	return `Subcommands, flags and their values are completed, and the names of tools: for a2mcp call those of the bridge that it
would call, for a2mcp audit --tool those in the log. Where nothing is known the shell offers files.`
}

// shellSetups is how a shell reads the code, and where that line is kept.
var shellSetups = map[string]struct{ line, file string }{
	"bash": {`eval "$(%s completion -c bash)"`, "~/.bashrc"},
	"zsh":  {`eval "$(%s completion -c zsh)"`, "~/.zshrc (below `autoload -Uz compinit && compinit`, which it needs)"},
	"fish": {`%s completion -c fish | source`, "~/.config/fish/config.fish"},
}

// userShell is the shell of $SHELL if it is one of those that can be completed in.
func userShell() string {
	name := filepath.Base(os.Getenv("SHELL"))
	if _, known := shellSetups[name]; known {
		return name
	}
	return "bash"
}

// needsQuotes reports whether a character of a path may mean something else to a
// shell: the library quotes nothing.
func needsQuotes(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("_/.+@-", r)
}

// fishFiles makes fish offer files where there are no candidates, as the other
// shells do; the library's code turns them off.
const fishFiles = "complete -c a2mcp -n 'not count (__complete_a2mcp) >/dev/null' -F"

// Run is a2mcp completion.
func (cmd completionCmd) Run(ctx *kong.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this binary: %w", err)
	}
	if strings.ContainsFunc(self, needsQuotes) {
		return fmt.Errorf("%q cannot stand in the code for a shell; put a2mcp where the path is of letters, digits and _/.+@- alone", self)
	}
	if cmd.Code {
		if cmd.Shell == "fish" {
			fmt.Fprintln(stdout, fishFiles)
		}
		code := kongcompletion.Completion{Shell: cmd.Shell, Code: true}
		return code.Run(ctx)
	}
	name := "a2mcp"
	if _, err := exec.LookPath(name); err != nil {
		name = self
	}
	setup := shellSetups[cmd.Shell]
	fmt.Fprintf(stdout, "This line makes %s complete a2mcp; put it into %s to have that in every shell:\n\n"+setup.line+"\n", cmd.Shell, setup.file, name)
	return nil
}

// wantsCandidates reports whether a shell has started this process to complete a
// command line, which is then in COMP_LINE. A shell gives no arguments, or the
// three of bash: the name of what is completed, the word at the cursor and the one
// before. Anybody else, such as a host whose environment has a COMP_LINE, gives a
// subcommand or a flag first.
func wantsCandidates(parser *kong.Kong, args []string) bool {
	if os.Getenv("COMP_LINE") == "" {
		return false
	}
	return len(args) == 0 || len(args) == 3 && !strings.HasPrefix(args[0], "-") &&
		!slices.ContainsFunc(parser.Model.Children, func(n *kong.Node) bool { return n.Name == args[0] })
}

// printCandidates prints what may stand at the cursor and ends the process.
func printCandidates(parser *kong.Kong) {
	kongcompletion.Register(parser,
		kongcompletion.WithPredictor("offered-tool", predict(offeredTools)),
		kongcompletion.WithPredictor("logged-tool", predict(loggedTools)))
}

// candidateLimit is how long somebody who pressed Tab waits at most.
const candidateLimit = time.Second

// isCandidate reports whether a tool's name is one as MCP recommends them. Shells
// insert candidates as they are, and what a bridge says must not become a command.
func isCandidate(name string) bool {
	return name != "" && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
	})
}

// predict makes a predictor of what finds names for a subcommand, given by the
// flags that stand before the cursor. Whatever is wrong with those or goes wrong
// later leaves no candidates.
func predict[C any](find func(context.Context, C) []string) complete.PredictFunc {
	return func(line complete.Args) []string {
		ctx, done := context.WithTimeout(context.Background(), candidateLimit)
		defer done()
		found := make(chan []string, 1)
		go func() {
			var cmd C
			parser, err := kong.New(&cmd, kong.NoDefaultHelp())
			if err == nil {
				_, err = parser.Parse(append(slices.Clone(line.Completed), "name")) // in the place of the cursor
			}
			if err != nil {
				found <- nil
				return
			}
			found <- slices.DeleteFunc(find(ctx, cmd), func(name string) bool { return !isCandidate(name) })
		}()
		select {
		case names := <-found:
			return names
		case <-ctx.Done():
			return nil
		}
	}
}

// offeredTools are the tools of the bridge that cmd would call.
func offeredTools(ctx context.Context, cmd callCmd) (names []string) {
	c, err := cmd.connect()
	if err != nil {
		return nil
	}
	defer c.end()
	raw, err := c.request(ctx, proto.MethodToolsList, nil)
	var list struct{ Tools []struct{ Name string } }
	if err != nil || json.Unmarshal(raw, &list) != nil {
		return nil
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// loggedTools are the tools in the log that cmd would show.
func loggedTools(_ context.Context, cmd auditCmd) (names []string) {
	log, err := cmd.open()
	if err != nil {
		return nil
	}
	defer func() { _ = log.Close() }() // it was only read
	// Those read before an error are good.
	_ = eachCall(log, func(c *audit.Call) error {
		names = append(names, c.Tool)
		return nil
	})
	slices.Sort(names)
	return slices.Compact(names)
}
