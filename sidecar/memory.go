package sidecar

import (
	"context"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// rememberTimeout is how long an answer waits for the memory that it made true
// to be in the pipe (HOST.md).
const rememberTimeout = 2 * time.Second

// remember leaves port, sessions and rotated tokens with the host and waits until they are in
// the pipe, so that a crash never forgets a session that a caller knows (S5).
func (s *sidecar) remember(ctx context.Context) {
	s.remembering.Lock()
	s.mu.Lock()
	memory := proto.Memory{Port: s.lastPort, Sessions: s.front.Sessions(), Retired: s.retiredTokens()}
	s.mu.Unlock()
	written, err := s.host.Remember(memory)
	s.remembering.Unlock()
	if err != nil {
		return // the host is gone, and its memory with it
	}
	select {
	case <-written:
	case <-ctx.Done():
	case <-time.After(rememberTimeout):
		s.log.Warn("host slow to remember", "waited", rememberTimeout)
	}
}
