package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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

// Run is a2mcp tools.
func (cmd toolsCmd) Run() error {
	c, err := cmd.connect()
	if err != nil {
		return report(err)
	}
	ctx, done := cmd.Timeout.context(context.Background())
	defer done()
	defer c.end()
	raw, err := c.request(ctx, proto.MethodToolsList, nil)
	if err != nil {
		return report(err)
	}
	if cmd.JSON {
		fmt.Fprintln(os.Stdout, string(raw))
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
	if err := json.Unmarshal(raw, &list); err != nil {
		return report(failed(exitProtocol, "the answer is no list of tools: %v", err))
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, tool := range list.Tools {
		first, _, _ := strings.Cut(strings.TrimSpace(tool.Description), "\n")
		fmt.Fprintf(table, "%s\t%s\t%s\n", printable(tool.Name), printable(strings.Join(tool.InputSchema.Required, " ")), printable(shorten(first, 80)))
	}
	return table.Flush()
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
	fmt.Fprintln(os.Stderr, "a2mcp:", f.text)
	return exitCode(f.code)
}
