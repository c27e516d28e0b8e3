//go:build unix

package tests

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// runningAt reads where the demo's bridge is now and which process it is; zero
// while there is none.
func (d *demo) runningAt() (address string, pid int) {
	var run struct {
		URL string
		PID int
	}
	data, err := os.ReadFile(filepath.Join(d.dir, "a2mcp.run", strconv.Itoa(d.cmd.Process.Pid)+".json"))
	if err != nil || json.Unmarshal(data, &run) != nil {
		return "", 0
	}
	return run.URL, run.PID
}

func (d *demo) answersPing(sid string) bool {
	resp, _, err := d.post(sid, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	return err == nil && resp.StatusCode == http.StatusOK
}

// tryCall calls a tool of the demo; what it prints is the text of the result.
func (d *demo) tryCall(sid, tool, arguments string) (text string, isError bool, err error) {
	resp, data, err := d.post(sid, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)))
	if err != nil {
		return "", false, err
	}
	var reply struct {
		Result struct {
			Content []block
			IsError bool
		}
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal(data, &reply) != nil || len(reply.Result.Content) == 0 {
		return "", false, fmt.Errorf("%s: %s", resp.Status, data)
	}
	return reply.Result.Content[0].Text, reply.Result.IsError, nil
}

// P7, S5: the port of a sidecar that was killed, taken by somebody else before the
// next one binds it: the bridge is at another port, with the sessions of before.
func TestPortIsTakenOnRestart(t *testing.T) {
	d := startJSON(t)
	sid := d.session(t)
	u, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	_, pid := d.runningAt()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var thief net.Listener
	for deadline := time.Now().Add(5 * time.Second); thief == nil && time.Now().Before(deadline); {
		thief, err = net.Listen("tcp", u.Host)
	}
	if thief == nil {
		t.Skip("the next sidecar was quicker: ", err)
	}
	defer thief.Close()
	waitFor(t, func() bool {
		address, now := d.runningAt()
		d.url = address
		return now != pid && address != ""
	})
	if d.url == u.String() {
		t.Fatal("two listen at one address")
	}
	if !d.answersPing(sid) {
		t.Error("the session did not survive")
	}
}

// F2: real sockets of one port on one address and on all of them, one after the other; the session goes on.
func TestAnotherHostKeepsThePort(t *testing.T) {
	d := startJSON(t)
	sid := d.session(t)
	for _, host := range []string{"0.0.0.0", "127.0.0.1"} {
		edited := fmt.Appendf(nil, `{"token": %q, "host": %q}`, d.token, host)
		if err := os.WriteFile(filepath.Join(d.dir, "a2mcp.json"), edited, 0o600); err != nil {
			t.Fatal(err)
		}
		last := strings.Count(d.stderr.String(), "listening:")
		waitFor(t, func() bool { return strings.Count(d.stderr.String(), "listening:") > last })
		d.client.CloseIdleConnections() // those of the old listener are being closed
		if address, _ := d.runningAt(); address != d.url || !d.answersPing(sid) {
			t.Errorf("with host %s it is at %s, was at %s", host, address, d.url)
		}
	}
}

// S5, P6, L1: a sidecar that is killed again and again under load comes back every
// time, at the same port, with the sessions of before; every call that was
// answered has both its records, and nothing is left over. The pause between two
// starts grows to 5 s.
func TestSoakKilledUnderLoad(t *testing.T) {
	kills := 3
	if soaking() {
		kills = 100
	}
	d := startJSON(t)
	if err := os.WriteFile(filepath.Join(d.dir, "a2mcp.json"), fmt.Appendf(nil, `{"token":%q,"auditMaxKB":4000000}`, d.token), 0o600); err != nil {
		t.Fatal(err)
	}
	sid := d.session(t)
	done := make(chan struct{})
	var answered, lost atomic.Int64
	var load sync.WaitGroup
	for n := range 4 {
		load.Go(func() {
			for seq := 0; ; seq++ {
				select {
				case <-done:
					return
				default:
				}
				want := fmt.Sprintf("%d/%d", n, seq)
				switch text, isError, err := d.tryCall(sid, "echo", fmt.Sprintf(`{"text":%q}`, want)); {
				case err != nil:
					lost.Add(1)
					var broken *url.Error
					if !errors.As(err, &broken) { // an answer, and a wrong one
						t.Errorf("a call ended with %v", err)
					}
					time.Sleep(10 * time.Millisecond) // between two sidecars nobody listens
				case isError || text != want:
					t.Errorf("got %q, want %q", text, want)
				default:
					answered.Add(1)
				}
			}
		})
	}
	var longest time.Duration
	for range kills {
		time.Sleep(rand.N(100 * time.Millisecond)) // a random moment of the traffic
		address, pid := d.runningAt()
		if address != d.url {
			t.Fatalf("the bridge is at %s, was at %s", address, d.url)
		}
		began := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { _, now := d.runningAt(); return now != pid && d.answersPing(sid) })
		longest = max(longest, time.Since(began))
	}
	close(done)
	load.Wait()
	starts, dones := readRecords(t, d.dir)
	t.Logf("%d kills: %d calls answered, %d lost; longest gap %v; %d starts, %d dones", kills, answered.Load(), lost.Load(), longest, len(starts), len(dones))
	if int64(len(dones)) < answered.Load() || len(starts) < len(dones) {
		t.Errorf("%d answers, %d dones, %d starts", answered.Load(), len(dones), len(starts))
	}
	if registers, err := os.ReadDir(filepath.Join(d.dir, "a2mcp.run")); err != nil || len(registers) != 1 {
		t.Errorf("registers: %v, %v", registers, err)
	}
}

// M13: a host that stands still. Calls that pend get their answer after 60 s, new
// ones at once after 30 s; the bridge itself answers all the while, and when the
// host goes on, everything does. Without A2MCP_SOAK it stands for two seconds and
// nobody notices.
func TestSoakHostStandsStill(t *testing.T) {
	stands := 2 * time.Second
	if soaking() {
		stands = 70 * time.Second
	}
	d := startJSON(t)
	sid := d.session(t)
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	goOn := sync.OnceFunc(func() { _ = d.cmd.Process.Signal(syscall.SIGCONT) })
	t.Cleanup(goOn) // before the demo is asked to end
	type ended struct {
		text  string
		after time.Duration
		err   error
	}
	pending := make(chan ended, 1)
	go func() {
		text, _, err := d.tryCall(sid, "echo", `{"text":"pending"}`)
		pending <- ended{text, time.Since(stopped), err}
	}()
	var refusedAfter time.Duration
	for ; time.Since(stopped) < stands; time.Sleep(500 * time.Millisecond) {
		if !d.answersPing(sid) {
			t.Fatalf("no answer to a ping %v after the host stopped", time.Since(stopped))
		}
		if refusedAfter != 0 || time.Since(stopped) < 37*time.Second { // 30 s, and as it is looked at every 5 s
			continue
		}
		began := time.Now()
		text, isError, err := d.tryCall(sid, "echo", `{"text":"new"}`)
		if err == nil && isError && strings.Contains(text, "host does not answer") {
			refusedAfter = time.Since(stopped)
			if took := time.Since(began); took > time.Second {
				t.Errorf("the first call that was refused took %v", took)
			}
		}
	}
	goOn()
	first := <-pending
	t.Logf("stood still for %v: new calls refused after %v; the pending one ended after %v with %q", stands, refusedAfter, first.after, first.text)
	switch {
	case first.err != nil:
		t.Error(first.err)
	case !soaking() && first.text != "pending":
		t.Errorf("the pending call ended with %q", first.text)
	case soaking() && (!strings.Contains(first.text, "host does not answer") || first.after < 59*time.Second || first.after > 68*time.Second):
		t.Errorf("the pending call ended after %v with %q", first.after, first.text)
	}
	if soaking() && refusedAfter == 0 {
		t.Error("no new call was refused")
	}
	waitFor(t, func() bool {
		text, _, err := d.tryCall(sid, "echo", `{"text":"again"}`)
		return err == nil && text == "again"
	})
}
