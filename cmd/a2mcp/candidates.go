package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/a2mcp/a2mcp/proto"
)

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

// printCandidates prints what may stand at the cursor.
func printCandidates(parser *kong.Kong) {
	line := os.Getenv("COMP_LINE")
	if at, err := strconv.Atoi(os.Getenv("COMP_POINT")); err == nil && at >= 0 && at < len(line) {
		line = line[:at]
	}
	words := strings.Fields(line)
	if words == nil || strings.HasSuffix(line, " ") {
		words = append(words, "")
	}
	last := len(words) - 1
	for _, candidate := range candidates(parser.Model.Node, words[min(1, last):last]) {
		if strings.HasPrefix(candidate, words[last]) && (words[last] != "" || candidate[0] != '-') {
			fmt.Fprintln(stdout, candidate)
		}
	}
}

// candidates are what may follow the words of a command line.
func candidates(node *kong.Node, words []string) (all []string) {
	var wanted *kong.Value // by the flag before the cursor
	begin, arguments := 0, 0
	for i, word := range words {
		name, _, whole := strings.Cut(word, "=")
		child := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == word })
		switch {
		case wanted != nil:
			wanted = nil
		case strings.HasPrefix(word, "-"):
			if flag := flagsOf(node)[name]; flag != nil && !flag.IsBool() && !whole {
				wanted = flag.Value
			}
		case child >= 0:
			node, begin, arguments = node.Children[child], i+1, 0
		default:
			arguments++
		}
	}
	switch {
	case wanted != nil:
		return valuesOf(wanted)
	case node.Name == "call" && arguments == 0:
		all = offeredTools(words[begin:])
	case arguments < len(node.Positional):
		all = valuesOf(node.Positional[arguments])
	case arguments == 0:
		for _, child := range node.Children {
			all = append(all, child.Name)
		}
	}
	return slices.AppendSeq(all, maps.Keys(flagsOf(node)))
}

// flagsOf are the flags that a subcommand takes, as they are written.
func flagsOf(node *kong.Node) map[string]*kong.Flag {
	flags := map[string]*kong.Flag{}
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			flags["--"+flag.Name] = flag
			if flag.Short != 0 {
				flags["-"+string(flag.Short)] = flag
			}
		}
	}
	return flags
}

func valuesOf(value *kong.Value) []string {
	if value.Enum == "" {
		return nil
	}
	return value.EnumSlice()
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

// offeredTools are the tools of the bridge that a2mcp call would call with the flags
// before the cursor. Whatever is wrong with those or goes wrong later leaves none.
func offeredTools(flags []string) []string {
	ctx, done := context.WithTimeout(context.Background(), candidateLimit)
	defer done()
	found := make(chan []string, 1)
	go func() { found <- askForTools(ctx, flags) }() // finding a bridge takes as long as it takes
	select {
	case names := <-found:
		return slices.DeleteFunc(names, func(name string) bool { return !isCandidate(name) })
	case <-ctx.Done():
		return nil
	}
}

func askForTools(ctx context.Context, flags []string) (names []string) {
	var cmd callCmd
	parser, err := kong.New(&cmd, kong.NoDefaultHelp())
	if err != nil {
		return nil
	}
	if _, err := parser.Parse(append(slices.Clone(flags), "name")); err != nil { // in the place of the cursor
		return nil
	}
	c, err := cmd.connect()
	if err != nil {
		return nil
	}
	defer c.end()
	raw, err := c.request(ctx, proto.MethodToolsList, nil)
	if err != nil {
		return nil
	}
	names, _ = toolNames(raw) // none where it is no list
	return names
}
