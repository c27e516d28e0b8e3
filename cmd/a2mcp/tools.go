package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/a2mcp/a2mcp/proto"
)

// toolsCmd lists the tools of a bridge.
type toolsCmd struct {
	target
	JSON    bool  `name:"json" help:"The whole answer as JSON, schemas included."`
	Timeout limit `help:"How long to wait, in seconds or with a unit; 0 waits for ever." default:"30s"`
}

// Help is the long text of a2mcp tools --help.
func (toolsCmd) Help() string { return "Exit codes are those of a2mcp call." }

// Run is a2mcp tools.
func (cmd toolsCmd) Run() error {
	c, err := cmd.connect()
	if err != nil {
		return report(err)
	}
	raw, err := cmd.list(c)
	c.end()
	if err != nil {
		return report(err)
	}
	if err := cmd.print(raw); err != nil {
		return report(err)
	}
	if stdout.err != nil {
		return exitCode(exitUnwritten)
	}
	return nil
}

func (cmd toolsCmd) list(c *client) ([]byte, error) {
	ctx, stop := untilSignal()
	defer stop()
	ctx, done := cmd.Timeout.context(ctx)
	defer done()
	return c.request(ctx, proto.MethodToolsList, nil)
}

// print writes the list; what could not be written is remembered elsewhere.
func (cmd toolsCmd) print(raw []byte) error {
	if cmd.JSON {
		fmt.Fprintln(stdout, string(raw))
		return nil
	}
	var list struct {
		Tools []struct {
			Name, Description string
			InputSchema       struct {
				Properties map[string]any
				Required   []string
			}
		}
	}
	err := json.Unmarshal(raw, &list)
	if err == nil && list.Tools == nil {
		err = errors.New("it has none")
	}
	if err != nil {
		return failed(exitProtocol, "the answer is no list of tools: %v", err)
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, tool := range list.Tools {
		first, _, _ := strings.Cut(strings.TrimSpace(tool.Description), "\n")
		fmt.Fprintf(table, "%s\t%s\t%s\n", printable(tool.Name), printable(strings.Join(tool.InputSchema.Required, " ")), printable(shorten(first, 80)))
	}
	_ = table.Flush() // to standard output
	return nil
}

// toolNames are the names in the result of a tools/list, in its order.
func toolNames(raw []byte) (names []string, err error) {
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names, nil
}

// shorten cuts a text to so many characters.
func shorten(s string, most int) string {
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// printable escapes what would move a terminal's cursor (F4).
func printable(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), `\\`, `\`)
}

// report prints an error of the client and turns it into its exit code.
func report(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	say(f.text)
	return exitCode(f.code)
}
