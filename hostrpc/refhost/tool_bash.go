package refhost

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/a2mcp/a2mcp/proto"
)

// Bounds of a command.
const (
	maxOutput      = 1 << 20         // of what is returned; the end is kept
	defaultTimeout = 2 * time.Minute // as agents have it
	killDelay      = 300 * time.Millisecond
)

func bashTool() tool {
	return tool{
		name: "bash", asks: true,
		description: "Run a command with the shell and return what it prints, with its exit code if that is not 0. timeout is in seconds.",
		schema: `{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"number"},"cwd":{"type":"string"}},` +
			`"required":["command"],"additionalProperties":false}`,
		run: func(e env, arguments []byte) ([]byte, bool, error) {
			a, err := decode[struct {
				Command, Cwd string
				Timeout      float64
			}](arguments)
			if err != nil {
				return nil, false, err
			}
			limit := defaultTimeout
			if a.Timeout > 0 {
				limit = time.Duration(a.Timeout * float64(time.Second))
			}
			text, isError, err := bash(e, a.Command, e.path(a.Cwd), limit)
			return proto.TextContent(text), isError, err
		},
	}
}

func bash(e env, command, dir string, limit time.Duration) (text string, isError bool, err error) {
	ctx, cancel := context.WithTimeout(e.ctx, limit)
	defer cancel()
	shell, flag := shell()
	cmd := exec.CommandContext(ctx, shell, flag, command)
	cmd.Dir = dir
	cmd.WaitDelay = killDelay // a grandchild that keeps the pipe open is not waited for
	groupOf(cmd)
	out := &output{progress: e.progress}
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	text = out.String()
	var exit *exec.ExitError
	switch {
	case e.ctx.Err() != nil:
		return "", true, e.ctx.Err()
	case ctx.Err() != nil:
		return text + fmt.Sprintf("\n[timed out after %v]", limit), true, nil
	case errors.As(err, &exit):
		return text + fmt.Sprintf("\n[exit code %d]", exit.ExitCode()), true, nil
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return "", true, err
	}
	return text, false, nil
}

// output gathers what a command prints and passes each new piece on.
type output struct {
	progress func(string)

	mu   sync.Mutex
	text []byte
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	o.text = append(o.text, p...)
	if cut := len(o.text) - 2*maxOutput; cut > 0 {
		o.text = append(o.text[:0], o.text[len(o.text)-maxOutput:]...)
	}
	o.mu.Unlock()
	o.progress(strings.ToValidUTF8(string(p), "\uFFFD"))
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.text
	if len(text) > maxOutput {
		text = text[len(text)-maxOutput:]
		for len(text) > 0 && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
	}
	return strings.ToValidUTF8(string(text), "\uFFFD")
}
