package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// callCmd calls one tool and prints what it answers.
type callCmd struct {
	target
	Name      string   `arg:"" help:"Name of the tool; a2mcp tools lists them." completion-predictor:"offered-tool"`
	Arguments []string `arg:"" optional:"" help:"key=text, or key:=JSON for a number, a list or anything else." placeholder:"key=value"`
	JSON      string   `name:"json" help:"All arguments as one JSON object, - for standard input." placeholder:"OBJECT" xor:"arguments"`
	Timeout   limit    `help:"How long to wait, in seconds or with a unit; 0 waits for ever, which a call that needs an approval may." default:"5m"`
	Out       string   `help:"Folder for images." default:"." type:"existingdir"`
}

// Help is the long text of a2mcp call --help.
func (callCmd) Help() string {
	return `Exit codes: 0 done, 1 the tool reported an error, 2 wrong usage, 3 the token was refused, 4 no answer in time,
5 nothing answers at the address, 6 something answers that is no bridge.

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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, done := cmd.Timeout.context(ctx)
	defer done()
	defer c.end()
	stopClock := clock(cmd.Name)
	params := append([]byte(`{"name":`), proto.Encode(cmd.Name)...)
	params = append(append(append(params, `,"arguments":`...), arguments...), '}')
	res, err := c.request(ctx, proto.MethodToolsCall, params)
	stopClock()
	if ctx.Err() != nil {
		c.cancel()
	}
	if err != nil {
		return report(err)
	}
	return cmd.print(res)
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

// print writes the content of a result.
func (cmd callCmd) print(raw []byte) error {
	var res struct {
		Content []struct {
			Type, Text, Data, MimeType string
		}
		IsError bool
	}
	if err := json.Unmarshal(raw, &res); err != nil {
		return report(failed(exitProtocol, "the answer is no tool result: %v", err))
	}
	for i, block := range res.Content {
		if block.Type != "image" {
			fmt.Fprintln(os.Stdout, strings.TrimSuffix(block.Text, "\n"))
			continue
		}
		path, err := saveImage(cmd.Out, cmd.Name, i, block.MimeType, block.Data)
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, path)
	}
	if res.IsError {
		return exitCode(exitToolError)
	}
	return nil
}

// saveImage writes an image to a new file and returns its path.
func saveImage(dir, tool string, index int, mime, data string) (string, error) {
	image, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "", fmt.Errorf("decoding the image: %w", err)
	}
	suffix := map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}[mime]
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '_'
		}
		return r
	}, tool)
	for n := index; ; n++ {
		path := filepath.Join(dir, name+"-"+strconv.Itoa(n)+suffix)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("saving the image: %w", err)
		}
		_, err = f.Write(image)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("saving the image: %w", err)
		}
		return path, nil
	}
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
