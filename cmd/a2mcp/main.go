// Command a2mcp is the bridge between MCP clients and a running agent host.
//
// Started by a host as `a2mcp sidecar` it speaks the stdio protocol of
// proto/HOST.md; `a2mcp demo` brings a small host of its own. Only this package
// touches standard input and output: every other byte the program prints goes
// to standard error.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// cli is the command line.
type cli struct {
	Sidecar    sidecarCmd    `cmd:"" help:"Serve a host over standard input and output. Hosts start this; people start demo."`
	Demo       demoCmd       `cmd:"" help:"Run a small host with its bridge and show every call."`
	Install    installCmd    `cmd:"" help:"Put the bridge where omp finds it."`
	Uninstall  uninstallCmd  `cmd:"" help:"Take it away again."`
	Doctor     doctorCmd     `cmd:"" help:"Prove the chain from the host to a call, one line a stage."`
	Call       callCmd       `cmd:"" help:"Call a tool of a running host."`
	Tools      toolsCmd      `cmd:"" help:"List the tools of a running host."`
	Audit      auditCmd      `cmd:"" help:"Show the calls in the audit log."`
	Config     configCmd     `cmd:"" help:"Check a configuration, or print its schema."`
	Completion completionCmd `cmd:"" help:"Say how a shell is made to complete this command line."`
	Version    versionCmd    `cmd:"" help:"Print the version of this binary and of what it is built from."`

	ShowVersion versionFlag `name:"version" help:"The same as a2mcp version."`
}

// description is what stands above the commands in a2mcp --help.
const description = `a2mcp lets any MCP client call the tools of a running agent host.

In the host's agent folder: a2mcp.json is the configuration, a2mcp.log the audit log, a2mcp.run tells where a bridge is
running. Environment: A2MCP_URL and A2MCP_TOKEN for the commands that are clients; A2MCP_CONFIG and A2MCP_AUDIT move the
files; A2MCP_LOG=debug makes the bridge tell more.`

// exitCode is an error that says how the process ends; its text has been printed.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit %d", int(c)) }

func main() { os.Exit(finish(run())) }

func run() int {
	var flags cli
	parser, err := kong.New(&flags, kong.Name("a2mcp"),
		kong.Description(description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: columns(os.Stdout)}),
		kong.Writers(stdout, os.Stderr),
		kong.Exit(func(code int) { os.Exit(finish(code)) }),
		kong.Vars{"shell": userShell()})
	if err != nil {
		panic(err) // the struct above is wrong
	}
	args := os.Args[1:]
	if wantsCandidates(parser, args) {
		printCandidates(parser)
		return 0
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	if problem := lookAt(args, parser.Model.Node); problem != "" {
		say(problem)
		return exitUsage
	}
	ctx, err := parser.Parse(args)
	switch {
	case stdout.err != nil:
		return 1 // finish says it
	case err != nil:
		parser.Errorf("%s (a2mcp --help shows what there is)", err)
		return exitUsage
	}
	var code exitCode
	switch err := ctx.Run(); {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case stdout.err != nil && errors.Is(err, stdout.err):
		return 1 // finish says it
	default:
		say(err.Error())
		return 1
	}
}

// lookAt says what is wrong with arguments that the parser would take as others: it
// makes U+FFFD of what is not UTF-8, and an empty value, as a shell makes one of a
// variable that is not set, would be none.
func lookAt(args []string, commands *kong.Node) (problem string) {
	for _, arg := range args {
		if !utf8.ValidString(arg) {
			return fmt.Sprintf("the argument %q is not UTF-8", arg)
		}
	}
	takesValue := map[string]bool{}
	_ = kong.Visit(commands, func(n kong.Visitable, next kong.Next) error {
		if flag, ok := n.(*kong.Flag); ok && !flag.IsBool() {
			takesValue["--"+flag.Name] = true
		}
		return next(nil)
	})
	for i, arg := range args {
		name, ended := strings.CutSuffix(arg, "=")
		switch {
		case arg == "--":
			return ""
		case takesValue[name] && (ended || i+1 < len(args) && args[i+1] == ""):
			return name + " is empty: give it a value or leave it out"
		}
	}
	return ""
}
