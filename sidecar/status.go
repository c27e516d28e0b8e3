package sidecar

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// status is the running state in one message (F3).
func (s *sidecar) status(ctx context.Context) proto.Message {
	s.mu.Lock()
	bound, broken := s.server, cmp.Or(s.configErr, s.refusal)
	s.mu.Unlock()

	var lines []string
	level := proto.LevelInfo
	switch {
	case bound != nil && everyNetwork(bound.wanted.Host):
		lines = append(lines, "a2mcp serves at "+bound.url+" and on every network of this machine (host "+bound.wanted.Host+")")
	case bound != nil:
		lines = append(lines, "a2mcp serves at "+bound.url)
	case broken != nil:
		level = proto.LevelError
		lines = append(lines, "a2mcp is not serving: "+escape(broken.Error()))
	default:
		lines = append(lines, "a2mcp is not serving: there is no main session")
	}
	n := s.front.Stats()
	lines = append(lines,
		fmt.Sprintf("sessions=%d calls=%d waiting_for_approval=%d queued=%d background=%d unauthorized=%d",
			n.Sessions, n.Running, n.Waiting, n.Queued, n.Background, n.Unauthorized),
		fmt.Sprintf("%s audit=%s audit_failures=%d", s.inferenceLine(ctx), s.paths.audit, s.audit.Failures()),
		"share="+s.shareLine(),
		"tunnel="+s.tunnel.line())
	if s.tunnel.public() != "" {
		lines = append(lines, publicHint)
	}
	lines = append(lines, "host="+s.hostLine())
	if s.host.frozen.Load() {
		level = proto.LevelWarning
	}
	return proto.Message{Level: level, Text: strings.Join(lines, "\n")}
}

// shareLine tells what is shared and for how long.
func (s *sidecar) shareLine() string {
	st := s.share.Status()
	if !st.Serving {
		return "none"
	}
	line := escape(st.Path) + " until " + st.ExpiresAt.Local().Format(time.TimeOnly)
	if st.ReadOnly {
		line += ", read-only"
	}
	if st.Browser {
		line += ", with a browser link"
	}
	return line
}

// hostLine tells the host, whether it answers, and what it lacks.
func (s *sidecar) hostLine() string {
	hello := s.hello.Load()
	line := escape(fmt.Sprintf("%s %s (%s)", hello.Host.Name, hello.Host.Version, hello.Host.Mode))
	if s.host.frozen.Load() {
		line += " does not answer"
	}
	var missing []string
	for _, feature := range []string{
		proto.FeatureCancel, proto.FeatureToolState, proto.FeatureProgress, proto.FeatureExclusive,
		proto.FeatureCards, proto.FeatureLLM, proto.FeatureToolsChanged, proto.FeatureRemember,
	} {
		if !slices.Contains(hello.Features, feature) {
			missing = append(missing, feature)
		}
	}
	if len(missing) > 0 {
		line += "; it lacks " + strings.Join(missing, ", ")
	}
	return line
}
