package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"
)

// completionCmd prints what makes a shell complete this command line.
type completionCmd struct {
	Shell string `arg:"" optional:"" help:"bash, zsh or fish. Default: that of $$SHELL." enum:"bash,zsh,fish" default:"${shell}"`
	Code  bool   `short:"c" help:"Print the code for the shell to read, not how to make it read that."`
}

// Help is the long text of a2mcp completion --help.
func (completionCmd) Help() string {
	return `Subcommands, flags and some of their values are completed, and for a2mcp call the names of the tools of the bridge
that it would call. Where nothing is known the shell offers files.`
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

// shellCodes make a shell start this binary for candidates, with the line in COMP_LINE.
// bash and fish know where the cursor is in it by themselves, zsh by way of bash's.
var shellCodes = map[string]string{
	"bash": `complete -o default -o bashdefault -C %s a2mcp
`,
	"zsh": `autoload -U +X bashcompinit && bashcompinit
complete -o default -o bashdefault -C %s a2mcp
`,
	"fish": `complete -c a2mcp -a '(COMP_LINE=(commandline --cut-at-cursor --current-process) %s)'
`,
}

// needsQuotes reports whether a character of a path may mean something else to a
// shell: in the code above it stands without quotes.
func needsQuotes(r rune) bool {
	return !unicode.In(r, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("_/.+@-", r)
}

// Run is a2mcp completion.
func (cmd completionCmd) Run() error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this binary: %w", err)
	}
	if strings.ContainsFunc(self, needsQuotes) {
		return fmt.Errorf("%q cannot stand in the code for a shell; put a2mcp where the path is of letters, digits and _/.+@- alone", self)
	}
	if cmd.Code {
		fmt.Fprintf(stdout, shellCodes[cmd.Shell], self)
		return nil
	}
	name := "a2mcp"
	if _, err := exec.LookPath(name); err != nil {
		name = self
	}
	setup := shellSetups[cmd.Shell]
	fmt.Fprintf(stdout, "This line makes %s complete a2mcp; put it into %s to have that in every shell:\n\n"+setup.line+"\n", cmd.Shell, setup.file, name)
	return nil
}
