package sidecar

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/a2mcp/a2mcp/proto"
)

// word is one thing the operator can ask for with /a2mcp (F3). What it answers is
// one message.
type word struct {
	name string
	run  func(*sidecar, context.Context) proto.Message
}

// words are in the order in which completion offers them.
func words() []word {
	return []word{
		{"status", (*sidecar).status},
		{"token", (*sidecar).showToken},
		{"rotate", (*sidecar).rotate},
		{"share stop", (*sidecar).stopShare},
		{"tunnel", (*sidecar).openTunnel},
		{"tunnel stop", (*sidecar).stopTunnel},
		{"allow", (*sidecar).allowInference},
	}
}

// commands is what the host registers with its command line.
func commands() []proto.Command {
	var names []string
	for _, w := range words() {
		names = append(names, w.name)
	}
	return []proto.Command{{
		Name: "a2mcp", Description: "the bridge that lets MCP clients call this host's tools", Words: names,
	}}
}

// command carries out a line the operator typed. Without a word it is the
// status.
func (s *sidecar) command(ctx context.Context, p proto.OperatorCommand) proto.Message {
	asked := strings.Join(strings.Fields(p.Args), " ")
	if asked == "" {
		asked = "status"
	}
	var valid []string
	for _, w := range words() {
		if w.name == asked {
			return w.run(s, ctx)
		}
		valid = append(valid, "`/a2mcp "+w.name+"`")
	}
	return proto.Message{Level: proto.LevelError, Text: fmt.Sprintf("a2mcp does not know %q; there is %s", escape(asked), strings.Join(valid, ", "))}
}

// showToken is the one place that shows the token (A5).
func (s *sidecar) showToken(context.Context) proto.Message {
	token := string(s.config().Token)
	if token == "" {
		return proto.Message{Level: proto.LevelError, Text: "a2mcp has no token: the configuration could not be read; `/a2mcp` says why"}
	}
	return proto.Message{Level: proto.LevelInfo, Text: token}
}

// rotate makes a new token: first in the file, then in memory, so that a restart
// never brings the old one back. It ends all sessions; the old token dies at
// once (F3).
func (s *sidecar) rotate(ctx context.Context) proto.Message {
	s.mu.Lock()
	broken := s.configErr
	s.mu.Unlock()
	if broken != nil {
		return proto.Message{Level: proto.LevelError, Text: "the token was not changed: " + escape(broken.Error())}
	}
	if err := s.replaceToken(newToken()); err != nil {
		s.log.Error("rotation failed", "err", err)
		return proto.Message{Level: proto.LevelError, Text: "the token was not changed, the old one still works: " + escape(err.Error())}
	}
	s.share.Close("token rotated")
	s.front.EndSessions(ctx)
	s.log.Info("token rotated")
	return proto.Message{Level: proto.LevelInfo, Text: "a2mcp has a new token and ended the share and all sessions; `/a2mcp token` shows it"}
}

// stopShare ends what a caller has shared.
func (s *sidecar) stopShare(context.Context) proto.Message {
	path := s.share.Close("operator")
	if path == "" {
		return proto.Message{Level: proto.LevelInfo, Text: "nothing was shared"}
	}
	return proto.Message{Level: proto.LevelInfo, Text: "a2mcp ended the share of " + escape(path)}
}

// refuseRetired keeps a token that was rotated away from coming back with a file, of
// a sidecar after a crash too (F3).
func (s *sidecar) refuseRetired(cfg Config) error {
	if cfg.Token == "" || !slices.Contains(s.retiredTokens(), hashOf(cfg.Token)) {
		return nil
	}
	return fmt.Errorf("%s: token: `/a2mcp rotate` has replaced this one; remove the field or write another, before a restart of the host brings it back",
		s.paths.config)
}

// retiredTokens is a copy of what the memory keeps of them.
func (s *sidecar) retiredTokens() []string {
	if list := s.retired.Load(); list != nil {
		return slices.Clone(*list)
	}
	return nil
}

func hashOf(token Secret) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// replaceToken puts a token into the file and then into force, with no reload
// between the two that would bring the old one back.
func (s *sidecar) replaceToken(token Secret) error {
	s.editing.Lock()
	defer s.editing.Unlock()
	if err := writeToken(s.paths.config, token); err != nil {
		return err
	}
	cfg := *s.config()
	retired := append(s.retiredTokens(), hashOf(cfg.Token)) // an editor that still has it open may bring it back
	s.retired.Store(&retired)
	cfg.Token = token
	s.adopt(cfg)
	return nil
}
