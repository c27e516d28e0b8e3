package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// callCmd calls one tool and prints what it answers.
type callCmd struct {
	target
	Name      string   `arg:"" help:"Name of the tool; a2mcp tools lists them."`
	Arguments []string `arg:"" optional:"" help:"key=text, or key:=JSON for a number, a list or anything else." placeholder:"key=value"`
	JSON      string   `name:"json" help:"All arguments as one JSON object, - for standard input." placeholder:"OBJECT" xor:"arguments"`
	Timeout   limit    `help:"How long to wait, in seconds or with a unit; 0 waits for ever, which a call that needs an approval may." default:"5m"`
	Out       string   `help:"Folder for images." default:"." type:"existingdir"`
}

// Help is the long text of a2mcp call --help.
func (callCmd) Help() string {
	return `Exit codes:

    0 done
    1 the tool reported an error
    2 wrong usage, or no bridge could be chosen
    3 the token was refused
    4 no answer in time, or the connection ended before it; the call may have run
    5 nothing answers at the address
    6 something answers that is no bridge
    7 the answer came, but could not be written (standard output, or the folder of --out)
    130 interrupted with Ctrl-C, the call cancelled; other signals: 128 + their number

Text goes to standard output as it is; an image is saved to a file whose path is printed.`
}

// Run is a2mcp call.
func (cmd callCmd) Run() error {
	arguments, err := cmd.arguments()
	if err != nil {
		return report(err)
	}
	c, err := cmd.connect()
	if err != nil {
		return report(err)
	}
	res, err := cmd.call(c, arguments)
	c.end()
	if err != nil {
		return report(err)
	}
	return cmd.print(res)
}

func (cmd callCmd) call(c *client, arguments []byte) ([]byte, error) {
	ctx, stop := untilSignal()
	defer stop()
	ctx, done := cmd.Timeout.context(ctx)
	defer done()
	stopClock := clock(cmd.Name)
	defer stopClock()
	params := append([]byte(`{"name":`), proto.Encode(cmd.Name)...)
	params = append(append(append(params, `,"arguments":`...), arguments...), '}')
	return c.request(ctx, proto.MethodToolsCall, params)
}

// arguments builds the object from key=text and key:=JSON.
func (cmd callCmd) arguments() ([]byte, error) {
	if cmd.JSON != "" {
		return wholeObject(cmd.JSON)
	}
	object := []byte{'{'}
	for i, pair := range cmd.Arguments {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, failed(exitUsage, "%q is no argument; write key=text or key:=JSON", pair)
		}
		raw := proto.Encode(value)
		if name, isJSON := strings.CutSuffix(key, ":"); isJSON {
			key, raw = name, []byte(value)
			if !proto.Valid(raw) {
				return nil, failed(exitUsage, "the value of %s is not JSON: %s", key, value)
			}
		}
		if i > 0 {
			object = append(object, ',')
		}
		object = append(append(append(object, proto.Encode(key)...), ':'), raw...)
	}
	return append(object, '}'), nil
}

func wholeObject(text string) ([]byte, error) {
	data := []byte(text)
	if text == "-" {
		var err error
		if data, err = io.ReadAll(os.Stdin); err != nil {
			return nil, failed(exitUsage, "reading the arguments: %v", err)
		}
	}
	data = []byte(strings.TrimSpace(string(data)))
	if !proto.Valid(data) || !proto.IsObject(data) {
		return nil, failed(exitUsage, "--json takes a JSON object")
	}
	return data, nil
}

// print writes the content of a result, all of it that can be written.
func (cmd callCmd) print(raw []byte) error {
	var res struct {
		Content []struct {
			Type, Text, Data, MimeType string
		}
		IsError bool
	}
	err := json.Unmarshal(raw, &res)
	if err == nil && res.Content == nil {
		err = errors.New("it has no content")
	}
	if err != nil {
		return report(failed(exitProtocol, "the answer is no tool result: %v", err))
	}
	for i, block := range res.Content {
		text := strings.TrimSuffix(block.Text, "\n")
		if block.Type == "image" {
			path, e := saveImage(cmd.Out, cmd.Name, i, block.MimeType, block.Data)
			if e != nil {
				err = e
				continue
			}
			text = path
		}
		fmt.Fprintln(stdout, text)
	}
	switch {
	case err != nil:
		return report(err)
	case stdout.err != nil:
		return exitCode(exitUnwritten)
	case res.IsError:
		return exitCode(exitToolError)
	}
	return nil
}

// clock shows how long a call has been running, on a terminal and after two
// seconds. The returned function takes it away.
func clock(tool string) (stop func()) {
	if !isTerminal(os.Stderr) {
		return func() {}
	}
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for seconds := 1; ; seconds++ {
			select {
			case <-done:
				if seconds > 2 {
					fmt.Fprint(os.Stderr, "\r\x1b[K")
				}
				return
			case <-tick.C:
				if seconds >= 2 {
					fmt.Fprintf(os.Stderr, "\r%s %ds", strconv.Quote(tool), seconds)
				}
			}
		}
	}()
	return func() { close(done); <-gone }
}
