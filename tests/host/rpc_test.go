package host

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// a picture of 8 by 8 pixels.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC"

// TestTools: an MCP client lists and calls omp's own tools (M3–M5, M7–M9).
func TestTools(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	h := p.start("--mode", "rpc")
	b := p.bridge().connect()
	h.wait("the address", uiRequest("notify", "a2mcp serves at "+b.URL))
	h.wait("the status line", uiRequest("setStatus", b.URL))
	b.works("xfer_share", map[string]any{"path": "."})
	if text := h.command(t, "share stop"); !strings.Contains(text, "a2mcp ended the share of "+p.work) {
		t.Errorf("share stop: %s", text) // F3
	}

	tools := b.tools()
	for _, name := range []string{"read", "bash", "edit", "write", "grep", "glob", "eval", "task", "xfer_share", "xfer_status", "xfer_stop"} {
		var schema struct{ Type string }
		if json.Unmarshal(tools[name], &schema) != nil || schema.Type != "object" {
			t.Errorf("%s has the schema %s", name, tools[name])
		}
	}

	b.works("write", map[string]any{"path": "a.txt", "content": "one\ntwo\n"})
	read := b.works("read", map[string]any{"path": "a.txt"}).text()
	if !strings.Contains(read, "two") {
		t.Errorf("read: %q", read)
	}
	tag, _, _ := strings.Cut(strings.TrimPrefix(read, "["), "]") // the file and the hash that edit wants to see
	edited := b.call("edit", map[string]any{"input": "[" + tag + "]\nPUT 2.=2:\n+three\n"})
	if data, _ := os.ReadFile(filepath.Join(p.work, "a.txt")); edited.IsError || string(data) != "one\nthree\n" {
		t.Errorf("edit: %q; the file: %q", edited.text(), data)
	}

	failed := b.call("bash", map[string]any{"command": "echo out; exit 3"})
	if !failed.IsError || !strings.Contains(failed.text(), "out") || !strings.Contains(failed.text(), "3") {
		t.Errorf("bash with an exit code: %+v", failed)
	}
	refused := b.call("bash", map[string]any{})
	if !refused.IsError || !strings.Contains(refused.text(), "command") || strings.Contains(refused.text(), "TypeError") {
		t.Errorf("bash without a command: %q", refused.text()) // M7
	}
	h.wait("word of the refusal", uiRequest("notify", "a call of bash was refused: ")) // M9: it has no card
	for _, name := range []string{"Bash", "xd://bash", ""} {                           // M5
		if res := b.call(name, nil); !res.IsError || !strings.Contains(res.text(), "not exposed") {
			t.Errorf("%q: %+v", name, res)
		}
	}

	data, err := base64.StdEncoding.DecodeString(png)
	if err != nil {
		t.Fatal(err)
	}
	p.write(filepath.Join(p.work, "dot.png"), string(data))
	image := b.works("read", map[string]any{"path": "dot.png"})
	found := false
	for _, block := range image.Content {
		found = found || block.Type == "image" && block.Data != "" && strings.HasPrefix(block.MimeType, "image/")
	}
	if !found {
		t.Errorf("no image in %.200v", image) // M4
	}

	// M8, M9: each call drew a card with an id of its own, and it was closed.
	if starts := h.count(typed("tool_execution_start")); starts < 5 {
		t.Errorf("%d cards", starts)
	}
	waitFor(t, "the end of each card", func() bool {
		return h.count(typed("tool_execution_start")) == h.count(typed("tool_execution_end"))
	})
	if start, done := p.records("bash"); start != 2 || done != 2 {
		t.Errorf("bash has %d start and %d done records", start, done) // L1
	}
}

// TestOwnToolsHaveCards: the bridge's own tools show on the host's screen too (M9).
func TestOwnToolsHaveCards(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	h := p.start("--mode", "rpc")
	b := p.bridge().connect()
	b.works("xfer_share", map[string]any{"path": "."})
	for _, kind := range []string{"tool_execution_start", "tool_execution_end"} {
		h.wait(kind, func(f frame) bool { return f["type"] == kind && f["toolName"] == "xfer_share" })
	}
}

// TestCancel: notifications/cancelled ends a command within two seconds, and the
// command is gone (M11).
func TestCancel(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	p.start("--mode", "rpc")
	b := p.bridge().connect()
	mark := filepath.Join(p.work, "began")
	answered := make(chan result, 1)
	go func() {
		answered <- b.callAs("slow", "bash", map[string]any{"command": "touch began; sleep 300; touch survived"})
	}()
	waitFor(t, "the command", func() bool { _, err := os.Stat(mark); return err == nil })
	began := time.Now()
	b.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"slow"}}`)
	res := <-answered
	if took := time.Since(began); took > 2*time.Second || !res.IsError || res.text() != "cancelled" {
		t.Errorf("after %s: %+v", took, res)
	}
	b.works("bash", map[string]any{"command": "! pgrep -f '[s]leep 300' && test ! -e survived"})
}

// TestProgress: what a running tool prints goes to the sidecar as it comes, each
// part once.
func TestProgress(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	// A sidecar whose input is written down as well.
	seen, script := filepath.Join(p.work, "seen"), filepath.Join(p.work, "tee")
	p.write(script, "#!/bin/sh\ntee '"+seen+"' | '"+need(t, "A2MCP")+"' \"$@\"\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	p.env = append(p.env, "A2MCP_BINARY="+script)
	p.start("--mode", "rpc")
	b := p.bridge().connect()
	b.works("bash", map[string]any{"command": "for i in 1 2 3 4; do echo line$i; sleep 0.4; done"})
	data, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	messages := 0
	for line := range strings.Lines(string(data)) {
		var m struct {
			Method string
			Params struct {
				Content []struct{ Text string }
			}
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Method == "tool_progress" {
			messages++
			for _, block := range m.Params.Content {
				all.WriteString(block.Text)
			}
		}
	}
	if messages < 2 || strings.Count(all.String(), "line1") != 1 {
		t.Errorf("%d messages of progress: %q", messages, all.String())
	}
}

// TestExclusive: two calls of a tool that omp runs one at a time do not overlap;
// other tools are not held up (M12).
func TestExclusive(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	p.start("--mode", "rpc")
	b := p.bridge().connect()
	code := `const fs = require("fs"); const busy = fs.existsSync("busy"); fs.writeFileSync("busy", ""); await new Promise(r => setTimeout(r, 700)); fs.unlinkSync("busy"); busy ? "OVERLAP" : "ALONE"`
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			res := b.call("eval", map[string]any{"language": "js", "code": code})
			if res.IsError || !strings.Contains(res.text(), "ALONE") {
				t.Errorf("eval: %+v", res)
			}
		})
	}
	waitFor(t, "the first", func() bool { _, err := os.Stat(filepath.Join(p.work, "busy")); return err == nil })
	b.works("glob", map[string]any{"path": "*"})
	calls.Wait()
}

// TestBackground: a call that omp goes on with by itself ends for the caller with
// omp's own text, and the status counts it (M14).
func TestBackground(t *testing.T) {
	p := newPlace(t)
	model := newProvider(t, says("noted"))
	p.model(model)
	h := p.start("--mode", "rpc")
	b := p.bridge().connect()
	h.wait("the address", uiRequest("notify", b.URL))
	b.works("bash", map[string]any{"command": "true"})
	res := b.works("bash", map[string]any{"command": "sleep 1; echo over", "async": true})
	if strings.Contains(res.text(), "over") {
		t.Errorf("it did not go to the background: %+v", res)
	}
	if text := h.command(t, "status"); !strings.Contains(text, "background=1") {
		t.Errorf("the status: %s", text)
	}
	waitFor(t, "the turn that the result begins", func() bool { return model.count() > 0 })
}

// TestSidecarKilled: the host starts another; port and sessions stay (P6, S5).
func TestSidecarKilled(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	h := p.start("--mode", "rpc")
	b := p.bridge().connect()
	first, url, session := b.PID, b.URL, b.session
	for range 3 {
		kill(t, b.PID)
		waitFor(t, "the next sidecar", func() bool {
			next := p.bridge()
			b.PID = next.PID
			return next.PID != first
		})
		first = b.PID
		if next := p.bridge(); next.URL != url {
			t.Fatalf("the address changed from %s to %s", url, next.URL)
		}
		b.works("read", map[string]any{"path": "."})
	}
	if b.session != session {
		t.Error("the session changed")
	}
	if n := h.count(typed("extension_error")); n > 0 {
		t.Errorf("%d errors of the extension", n)
	}
}

// TestKilledInMidCall: a call whose sidecar dies is aborted in the host.
func TestKilledInMidCall(t *testing.T) {
	p := newPlace(t)
	p.model(newProvider(t, says("hello")))
	p.start("--mode", "rpc")
	b := p.bridge().connect()
	ended := make(chan error, 1)
	go func() {
		_, _, err := b.try(context.Background(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bash","arguments":{"command":"touch began; sleep 301; touch survived"}}}`)
		ended <- err
	}()
	waitFor(t, "the command", func() bool { _, err := os.Stat(filepath.Join(p.work, "began")); return err == nil })
	old := b.PID
	kill(t, old)
	if err := <-ended; err == nil {
		t.Error("the call was answered by a dead sidecar")
	}
	waitFor(t, "the next sidecar", func() bool { return p.bridge().PID != old })
	next := p.bridge().connect()
	waitFor(t, "the end of the command", func() bool {
		return !next.call("bash", map[string]any{"command": "! pgrep -f '[s]leep 301'"}).IsError
	})
	start, done := p.records("bash")
	if start != done+1 {
		t.Errorf("%d start and %d done records; the killed call has to stay open", start, done)
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %s within %s", what, patience)
		}
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	process, err := os.FindProcess(pid)
	if err == nil {
		err = process.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}
