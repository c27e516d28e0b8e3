package sidecar

import (
	"context"
	"strings"
	"time"

	"github.com/a2mcp/a2mcp/audit"
	"github.com/a2mcp/a2mcp/files"
	"github.com/a2mcp/a2mcp/proto"
)

// publicHint is what an operator with an open tunnel has to keep in mind.
const publicHint = "the whole port is public, behind the token alone; through the tunnel a request carries at most 100 MB and lasts about 100 s"

// newTunnel makes the tunnel, which is closed.
func (s *sidecar) newTunnel() *tunnel {
	return &tunnel{
		find: s.opt.Cloudflared, limit: tunnelLimit, after: time.After, log: s.log,
		bridge: s.address,
		record: s.recordTunnel,
		must:   func() bool { return s.config().Audit == "required" },
		tell:   func(level, text string) { _ = s.host.Notify(level, text) },
		shown:  s.showAddress,
	}
}

// address is where the bridge is reached on this machine.
func (s *sidecar) address() (local string, port int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		return "", 0
	}
	return strings.TrimSuffix(s.server.url, "/"), s.server.port
}

// showAddress keeps the host's status line: what is public shows there.
func (s *sidecar) showAddress() {
	local, _ := s.address()
	if local == "" {
		return // given up, and told
	}
	text := "a2mcp " + local + "/"
	if public := s.tunnel.public(); public != "" {
		text += " " + public + "/"
	}
	_ = s.host.Status(text) // a host that has gone has no status line
}

// openTunnel is `/a2mcp tunnel` (T1).
func (s *sidecar) openTunnel(ctx context.Context) proto.Message {
	url, fresh, err := s.tunnel.open(ctx)
	switch {
	case err != nil:
		return proto.Message{Level: proto.LevelError, Text: "no tunnel: " + escape(err.Error())}
	case !fresh:
		return proto.Message{Level: proto.LevelInfo, Text: "the tunnel is open: " + url + "/\n" + publicHint}
	}
	return proto.Message{Level: proto.LevelInfo, Text: "a2mcp is reached from everywhere at " + url + "/ (files at " + url + files.Route +
		") until `/a2mcp tunnel stop`; the name may take some seconds to be known\n" + publicHint}
}

// stopTunnel is `/a2mcp tunnel stop`. It answers when the process is gone.
func (s *sidecar) stopTunnel(ctx context.Context) proto.Message {
	url, over := s.tunnel.close("")
	if over == nil {
		return proto.Message{Level: proto.LevelInfo, Text: "there is no tunnel"}
	}
	select {
	case <-over:
	case <-ctx.Done():
	}
	if url == "" {
		return proto.Message{Level: proto.LevelInfo, Text: "the tunnel was closed before it was open"}
	}
	return proto.Message{Level: proto.LevelInfo, Text: "the tunnel is closed: " + url + "/ leads nowhere now"}
}

// closeTunnel begins the end of a tunnel whose port is given up. It is waited
// for with what is draining (T2).
func (s *sidecar) closeTunnel(why string) {
	if _, over := s.tunnel.close(why); over != nil {
		s.draining.Go(func() { <-over })
	}
}

// tunnelAction is the `args` of a tunnel record (L7).
type tunnelAction struct {
	Action string `json:"action"` // start or stop
	URL    string `json:"url,omitempty"`
	Port   int    `json:"port"`
	Why    string `json:"why,omitempty"`
	Error  string `json:"error,omitempty"`
}

func (s *sidecar) recordTunnel(a tunnelAction) error {
	return s.audit.Write(audit.Record{
		Time: time.Now(), ID: audit.NewID(), Phase: audit.Done, Tool: "tunnel", IsError: a.Error != "", Args: proto.Encode(a),
	})
}
