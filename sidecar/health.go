package sidecar

import (
	"context"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// The host's health (M13) and its process (P6).
const (
	healthInterval  = 5 * time.Second
	frozenAfter     = 30 * time.Second // of silence: new calls fail at once
	abandonAfter    = 60 * time.Second // of silence: pending calls fail too
	processInterval = 5 * time.Second
)

// watchHealth asks host_state every 5 s. A host that says nothing for 30 s is
// frozen; all recovers when it speaks again (M13).
func (s *sidecar) watchHealth(ctx context.Context) error {
	if !s.greeted(ctx) {
		return ctx.Err()
	}
	asked := make(chan struct{}, 1) // one question at a time
	tick := time.NewTicker(healthInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		select {
		case asked <- struct{}{}:
			go func() {
				_, _ = s.host.State(ctx) // the answer counts as a sign of life
				<-asked
			}()
		default:
		}
		s.judgeHealth()
	}
}

func (s *sidecar) judgeHealth() {
	silence := time.Since(s.host.Conn.LastSeen())
	switch frozen := s.host.frozen.Load(); {
	case silence >= frozenAfter && !frozen:
		s.host.frozen.Store(true)
		s.host.notice(proto.LevelError, "a2mcp: the host does not answer; calls fail until it does")
	case silence < frozenAfter && frozen:
		s.host.frozen.Store(false)
		s.host.notice(proto.LevelInfo, "a2mcp: the host answers again")
	}
	if silence >= abandonAfter {
		s.front.EndCalls(time.Now(), textFrozen)
	}
}

// watchProcess ends the bridge when the host's process is gone, should somebody
// else hold its pipe open (HOST.md).
func (s *sidecar) watchProcess(ctx context.Context) error {
	if !s.greeted(ctx) {
		return ctx.Err()
	}
	tick := time.NewTicker(processInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if pid := s.hello.Load().Host.PID; pid > 0 && !s.opt.HostAlive(pid) {
			s.log.Warn("host process gone", "pid", pid)
			return nil
		}
	}
}

// greeted waits for the first hello; false if ctx ends before.
func (s *sidecar) greeted(ctx context.Context) bool {
	select {
	case <-s.ready:
		return true
	case <-ctx.Done():
		return false
	}
}
