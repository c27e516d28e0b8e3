package sidecar

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/a2mcp/a2mcp/audit"
	"github.com/a2mcp/a2mcp/proto"
)

// Time for the host to say how many main sessions it has. A shutdown has to be
// answered within 1.5 s (HOST.md).
const (
	startStateTimeout    = 5 * time.Second
	shutdownStateTimeout = time.Second
)

// sessionStart binds the port if it is not bound yet (P1).
func (s *sidecar) sessionStart(ctx context.Context, p proto.SessionStart) proto.SessionStartResult {
	if p.IsMain {
		s.assertInference(ctx)
	}
	s.mu.Lock()
	bound := s.server
	s.mu.Unlock()
	if bound == nil {
		var err error
		if bound, err = s.up(ctx, p.Mains); err != nil {
			return proto.SessionStartResult{Reason: err.Error()}
		}
	}
	return proto.SessionStartResult{URL: &bound.url}
}

// errNoMain is why a port that was just bound is closed again (P4).
var errNoMain = errors.New("no main session is left")

// up binds the port, looks at the host once more and announces the address.
func (s *sidecar) up(ctx context.Context, mains int) (*server, error) {
	cfg, err := s.usableConfig()
	if err != nil {
		return nil, s.tell(err)
	}
	s.mu.Lock()
	last := s.lastPort
	s.mu.Unlock()
	sv, err := s.bind(cfg, last)
	if err != nil {
		return nil, s.tell(err)
	}
	if s.mains(ctx, startStateTimeout, mains) == 0 {
		_ = sv.listener.Close()
		return nil, errNoMain
	}
	s.mu.Lock()
	s.server, s.lastPort, s.refusal = sv, sv.port, nil
	s.mu.Unlock()
	s.writeRunFile(sv)
	s.remember(ctx)
	s.serve(sv)
	s.announce(sv)
	s.editing.Lock()
	s.tellOdd()
	s.editing.Unlock()
	return sv, nil
}

// usableConfig is the configuration, read again if it was wrong the last time.
func (s *sidecar) usableConfig() (Config, error) {
	s.editing.Lock()
	defer s.editing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.configErr == nil {
		return *s.config(), nil
	}
	cfg, err := s.readConfig()
	if err != nil {
		return Config{}, err
	}
	if cfg.Audit == "required" {
		probe, err := audit.Open(s.paths.audit, s.auditOptions(cfg))
		if err != nil {
			return Config{}, fmt.Errorf("audit log: %w", err)
		}
		_ = probe.Close()
	}
	s.configErr = nil
	s.adopt(cfg)
	return cfg, nil
}

// tell shows the operator what he has to mend and returns it.
func (s *sidecar) tell(err error) error {
	s.mu.Lock()
	s.refusal = err
	s.mu.Unlock()
	s.log.Error("not serving", "reason", err)
	_ = s.host.Notify(proto.LevelError, "a2mcp is not serving: "+escape(err.Error()))
	return err
}

// announce shows the address, once for each binding.
func (s *sidecar) announce(sv *server) {
	s.log.Info("listening", "url", sv.url)
	level, text := proto.LevelInfo, "a2mcp serves at "+sv.url+" (`/a2mcp token` shows the token)"
	if sv.missed != 0 {
		level = proto.LevelWarning
		text = fmt.Sprintf("a2mcp: port %d is taken, serving at %s (port %d) instead. "+
			"Clients of the old port now show their token to whoever has it: `/a2mcp rotate` makes a new one", sv.missed, sv.url, sv.port)
	}
	_ = s.host.Notify(level, text)
	if everyNetwork(sv.wanted.Host) {
		_ = s.host.Notify(proto.LevelWarning, "a2mcp listens on every network of this machine (host "+sv.wanted.Host+
			"): whoever reaches it and has the token can run tools here")
	}
	s.showAddress()
}

// sessionShutdown gives the port up if no main session is left (P3).
func (s *sidecar) sessionShutdown(ctx context.Context, p proto.SessionShutdown) proto.SessionShutdownResult {
	s.mu.Lock()
	bound := s.server
	s.mu.Unlock()
	if bound == nil || s.mains(ctx, shutdownStateTimeout, p.Mains) > 0 {
		return proto.SessionShutdownResult{}
	}
	s.down(drainTimeout)
	return proto.SessionShutdownResult{Released: true}
}

// down gives the port up, if there is one.
func (s *sidecar) down(limit time.Duration) {
	s.mu.Lock()
	sv, older := s.server, s.older
	s.server, s.older = nil, nil
	s.mu.Unlock()
	if sv == nil {
		return
	}
	for _, sv := range append(older, sv) {
		s.release(sv, limit)
	}
	s.closeTunnel("bridge stopped")
	s.removeRunFile()
	s.log.Info("port released", "url", sv.url)
	_ = s.host.Status("")
}

// mains asks the host how many main sessions it has. If it does not say, what
// the event said when it was sent has to do.
func (s *sidecar) mains(ctx context.Context, limit time.Duration, otherwise int) int {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	state, err := s.host.State(ctx)
	if err != nil {
		s.log.Warn("host did not say its state", "err", err)
		return otherwise
	}
	return state.Mains
}

// endTimeout is how long transfers may go on once the host has gone (P6).
const endTimeout = 3500 * time.Millisecond

// end is the end of Run: the port is given up, calls in flight have failed with
// the connection and are recorded, downloads get a moment.
func (s *sidecar) end() {
	s.down(endTimeout)
	s.draining.Wait()
	if s.audit != nil {
		_ = s.audit.Close()
	}
}
