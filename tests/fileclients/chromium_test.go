//go:build unix

package fileclients

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// browser is a headless Chromium with one page at a time, spoken to over two pipes: the DevTools protocol, each
// message ended by a NUL.
type browser struct {
	t       *testing.T
	to      io.Writer
	session string
	downs   string // folder of downloads

	mu      sync.Mutex
	last    int
	waiting map[int]chan message
	events  []message
	changed chan struct{} // closed at each event, then replaced
}

type message struct {
	ID        int             `json:"id,omitempty"`
	Session   string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
	delivered bool
}

// patience is for a machine that has much else to do.
const patience = 60 * time.Second

func startBrowser(t *testing.T) *browser {
	t.Helper()
	chromium := program(t, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
	profile, err := os.MkdirTemp("", "a2mcp-browser-")
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, waiting: map[int]chan message{}, changed: make(chan struct{})}
	theirIn, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--hide-scrollbars", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-default-apps", "--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4
	cmd.Env = append(os.Environ(), "HOME="+profile, "TZ=Europe/Berlin", "LANGUAGE=en", "LC_ALL=C.UTF-8")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b.to = to
	read := make(chan struct{})
	go func() { defer close(read); b.read(from) }()
	t.Cleanup(func() {
		to.Close()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its own group
		_ = cmd.Wait()
		<-read
		from.Close()
		os.RemoveAll(profile)
	})
	return b
}

// tab opens a fresh page for one test, which reports to t, and closes it with t.
func (b *browser) tab(t *testing.T) {
	t.Helper()
	before := b.t
	b.t = t
	var target struct{ TargetID string }
	b.into(b.call("Target.createTarget", map[string]any{"url": "about:blank"}), &target)
	var attached struct{ SessionID string }
	b.into(b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}), &attached)
	b.session, b.downs = attached.SessionID, t.TempDir()
	t.Cleanup(func() {
		b.call("Target.closeTarget", map[string]any{"targetId": target.TargetID})
		b.t = before
	})
	for _, domain := range []string{"Page", "Runtime", "Network", "Log", "DOM"} {
		b.call(domain+".enable", nil)
	}
	b.size(1200, 800)
	b.call("Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": b.downs, "eventsEnabled": true})
}

func (b *browser) read(from io.Reader) {
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if answer := b.waiting[m.ID]; m.ID != 0 && answer != nil {
			delete(b.waiting, m.ID)
			answer <- m
		} else {
			b.events = append(b.events, m)
			close(b.changed)
			b.changed = make(chan struct{})
		}
		b.mu.Unlock()
	}
}

// call sends a command to the page and waits for its result.
func (b *browser) call(method string, params any) json.RawMessage {
	b.t.Helper()
	result, err := b.try(method, params)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// try is call for what may go wrong.
func (b *browser) try(method string, params any) (json.RawMessage, error) {
	if params == nil {
		params = map[string]any{}
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	answer := make(chan message, 1)
	b.mu.Lock()
	b.last++
	m := message{ID: b.last, Method: method, Params: raw}
	if !strings.HasPrefix(method, "Target.") && !strings.HasPrefix(method, "Browser.") {
		m.Session = b.session
	}
	b.waiting[m.ID] = answer
	line, err := json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(line, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, m.Error)
		}
		return m.Result, nil
	case <-time.After(patience):
		return nil, fmt.Errorf("%s: no answer", method)
	}
}

func (b *browser) into(raw json.RawMessage, v any) {
	b.t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		b.t.Fatalf("%s: %v", raw, err)
	}
}

// await waits for an event that was not awaited before.
func (b *browser) await(method string, which func(params json.RawMessage) bool) json.RawMessage {
	b.t.Helper()
	end := time.After(patience)
	for {
		b.mu.Lock()
		for i := range b.events {
			e := &b.events[i]
			if !e.delivered && e.Method == method && (which == nil || which(e.Params)) {
				e.delivered = true
				b.mu.Unlock()
				return e.Params
			}
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-end:
			b.t.Fatalf("no %s came", method)
		}
	}
}

// params are what all events of a kind so far carried.
func (b *browser) params(method string) []json.RawMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []json.RawMessage
	for _, e := range b.events {
		if e.Method == method {
			all = append(all, e.Params)
		}
	}
	return all
}

// forget drops the events so far.
func (b *browser) forget() { b.mu.Lock(); b.events = nil; b.mu.Unlock() }

// open goes to an address and waits until the page is loaded.
func (b *browser) open(address string) {
	b.t.Helper()
	b.forget()
	b.call("Page.navigate", map[string]any{"url": address})
	b.await("Page.loadEventFired", nil)
}

// eval runs an expression in the page, waits for a promise, and returns its value as text.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	value, err := b.tryEval(expression)
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

func (b *browser) tryEval(expression string) (string, error) {
	raw, err := b.try("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	if err != nil {
		return "", err
	}
	var out struct {
		Result           struct{ Value any }
		ExceptionDetails json.RawMessage
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return "", err
	}
	if out.ExceptionDetails != nil {
		return "", fmt.Errorf("exception: %s", out.ExceptionDetails)
	}
	if out.Result.Value == nil {
		return "", nil
	}
	return fmt.Sprint(out.Result.Value), nil
}

// until waits until an expression is true in the page, which may be on its way to another one.
func (b *browser) until(expression string) {
	b.t.Helper()
	end := time.Now().Add(patience)
	for {
		value, err := b.tryEval(expression)
		if value == "true" {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("never true: %s: %v\n%s", expression, err, b.eval("document.body.innerText"))
		}
		time.Sleep(20 * time.Millisecond) // asking again; the deadline decides
	}
}

// click clicks with the mouse in the middle of the first element that a selector finds.
func (b *browser) click(selector string) {
	b.t.Helper()
	var at struct{ X, Y float64 }
	b.into(json.RawMessage(b.eval(fmt.Sprintf(`(() => {
		const e = document.querySelector(%q); e.scrollIntoView({block: "nearest"});
		const r = e.getBoundingClientRect(); return JSON.stringify({x: r.x + r.width / 2, y: r.y + r.height / 2}); })()`, selector))), &at)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1})
	}
}

// size is the window's, in CSS pixels.
func (b *browser) size(width, height int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
}

// scheme is "light" or "dark".
func (b *browser) scheme(name string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": name}}})
}

// picture saves what the page looks like where A2MCP_PICTURES names a folder.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("A2MCP_PICTURES")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	b.into(b.call("Page.captureScreenshot", map[string]any{"format": "png"}), &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), data, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// complaints are the console's errors, exceptions, and requests to another origin than the one given.
func (b *browser) complaints(origin string) []string {
	var all []string
	for _, p := range b.params("Runtime.exceptionThrown") {
		all = append(all, "exception: "+string(p))
	}
	for _, p := range b.params("Runtime.consoleAPICalled") {
		all = append(all, "console: "+string(p))
	}
	for _, p := range b.params("Log.entryAdded") {
		// For a file that is no page the browser asks for an icon of its own accord.
		if !strings.Contains(string(p), "/favicon.ico") {
			all = append(all, "log: "+string(p))
		}
	}
	for _, p := range b.params("Network.requestWillBeSent") {
		var sent struct{ Request struct{ URL string } }
		if json.Unmarshal(p, &sent) != nil || !strings.HasPrefix(sent.Request.URL, origin) && !strings.HasPrefix(sent.Request.URL, "data:") {
			all = append(all, "request: "+sent.Request.URL)
		}
	}
	return all
}
