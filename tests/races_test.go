package tests

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/proto"
)

// P1, P3, P4: starts and shutdowns of sessions interleaved at random with a host
// that takes its time never lead to two ports or to an announcement too many, and
// at rest the port is open if and only if a main session lives.
func TestLifecycleRaces(t *testing.T) {
	for round := range 300 {
		seed := rand.Uint64()
		dir := t.TempDir()
		ok := t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { lifecycleRound(t, dir, seed) })
		})
		if !ok {
			t.Fatalf("the seed of the round that failed: %d", seed)
		}
	}
}

// raceHost is a host whose main sessions come and go.
type raceHost struct {
	mu       sync.Mutex
	mains    map[string]bool
	delay    func() time.Duration
	notices  int
	released int
	answers  sync.WaitGroup
}

func (h *raceHost) handle(_ context.Context, req *hostrpc.Request) {
	switch req.Method {
	case proto.SidecarHostState:
		h.mu.Lock()
		wait := h.delay()
		h.mu.Unlock()
		h.answers.Go(func() {
			time.Sleep(wait) // the fake clock's
			_ = req.Reply(proto.Encode(proto.HostState{Mains: h.live()}))
		})
	case proto.SidecarNotify:
		h.mu.Lock()
		h.notices++
		h.mu.Unlock()
	}
}

func (h *raceHost) live() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.mains)
}

func lifecycleRound(t *testing.T, dir string, seed uint64) {
	rnd, slow := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2)) // the second is the host's
	m := newMemory(t)
	run := m.start(dir, nil)
	h := &raceHost{mains: map[string]bool{}, delay: func() time.Duration { return time.Duration(slow.IntN(900)) * time.Millisecond }}
	conn := hostrpc.New(run.out, run.in, h.handle, hostrpc.Options{Side: "h"})
	var all sync.WaitGroup
	all.Go(func() { _ = conn.Run(t.Context()) })
	ask := func(method string, params any) ([]byte, error) {
		return conn.Call(t.Context(), method, proto.Encode(params))
	}
	if _, err := ask(proto.HostHello, proto.Hello{Protocol: 1, AgentDir: dir, Home: dir, Cwd: dir}); err != nil {
		t.Fatal(err)
	}
	var events sync.WaitGroup
	for range 12 {
		id := fmt.Sprint(rnd.IntN(3))
		isMain := id != "2" // one of them is a subagent
		h.mu.Lock()
		begins := rnd.IntN(2) == 0
		if isMain && begins {
			h.mains[id] = true
		} else if isMain {
			delete(h.mains, id)
		}
		count := len(h.mains)
		h.mu.Unlock()
		events.Go(func() {
			if begins {
				_, _ = ask(proto.HostSessionStart, proto.SessionStart{SessionID: id, IsMain: isMain, Mains: count})
				return
			}
			raw, err := ask(proto.HostSessionShutdown, proto.SessionShutdown{SessionID: id, IsMain: isMain, Mains: count})
			if err == nil && string(proto.Member(raw, "released")) == "true" {
				h.mu.Lock()
				h.released++
				h.mu.Unlock()
			}
		})
		time.Sleep(time.Duration(rnd.IntN(400)) * time.Millisecond)
		synctest.Wait()
	}
	events.Wait()
	// At rest: what is last said settles it.
	if h.live() == 0 {
		_, _ = ask(proto.HostSessionShutdown, proto.SessionShutdown{SessionID: "last"})
	} else {
		_, _ = ask(proto.HostSessionStart, proto.SessionStart{SessionID: "last", Mains: h.live()})
	}
	m.network.mu.Lock()
	open, most := len(m.network.open), m.network.most
	m.network.mu.Unlock()
	h.mu.Lock()
	bindings := h.released + open
	if want := min(len(h.mains), 1); open != want || most > 1 || h.notices > bindings {
		t.Errorf("%d mains, %d ports open, %d at once, %d announcements of %d bindings", len(h.mains), open, most, h.notices, bindings)
	}
	h.mu.Unlock()
	run.in.Close()
	<-run.ended
	all.Wait()
	h.answers.Wait()
}

// S3: at most 64 sessions; the least recently seen is evicted first, those with a
// call in flight last. H14: ids of different sessions do not meet.
func TestSessionsAreEvictedInOrder(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(t)
		run := m.start(dir, nil)
		answer := make(chan struct{})
		conn := hostrpc.New(run.out, run.in, func(_ context.Context, req *hostrpc.Request) {
			switch req.Method {
			case proto.SidecarHostState:
				_ = req.Reply([]byte(`{"mains":1}`))
			case proto.SidecarToolsCall:
				go func() {
					<-answer
					_ = req.Reply([]byte(`{"outcome":"done","content":[],"isError":false}`))
				}()
			}
		}, hostrpc.Options{Side: "h"})
		var all sync.WaitGroup
		all.Go(func() { _ = conn.Run(t.Context()) })
		url, token := startSession(t, conn, dir, m.said)
		client := m.client()
		post := func(sid, body string) *http.Response {
			req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			if sid != "" {
				req.Header.Set(proto.SessionHeader, sid)
			}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp
		}
		begin := func() string {
			time.Sleep(time.Second)
			return post("", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`).Header.Get(proto.SessionHeader)
		}
		alive := func(sid string) bool {
			return post(sid, `{"jsonrpc":"2.0","method":"notifications/look"}`).StatusCode == http.StatusAccepted
		}
		busy, first, second := begin(), begin(), begin()
		all.Go(func() { post(busy, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`) })
		synctest.Wait()
		for range 61 {
			begin()
		}
		time.Sleep(time.Second)
		alive(first) // now second is the one seen longest ago
		begin()
		if alive(second) || !alive(first) || !alive(busy) {
			t.Errorf("after the 65th: busy %v, first %v, second %v; want only second gone", alive(busy), alive(first), alive(second))
		}
		for range 200 {
			begin()
		}
		if alive(first) || !alive(busy) {
			t.Errorf("after many: busy %v, first %v; want busy alone", alive(busy), alive(first))
		}
		close(answer)
		synctest.Wait()
		client.CloseIdleConnections()
		run.in.Close()
		<-run.ended
		all.Wait()
	})
}
