package sidecar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/httpfront"
	"github.com/a2mcp/a2mcp/proto"
)

// switchTimeout bounds one llm/set; the host needs about a quarter of a second.
const switchTimeout = 15 * time.Second

// setInference carries out POST /host-llm (D1).
func (s *sidecar) setInference(ctx context.Context, enabled bool) (httpfront.Inference, error) {
	if !s.hasSwitch() {
		return httpfront.Inference{}, httpfront.ErrNoSwitch
	}
	res, news, err := s.switchLLM(context.WithoutCancel(ctx), proto.LLMSet{Deny: !enabled})
	if err != nil {
		return httpfront.Inference{}, err
	}
	if news {
		s.tellSwitched(res)
	}
	state := httpfront.Inference{Enabled: !res.Armed, Denied: res.Denied, Degraded: res.Degraded}
	if res.Degraded {
		state.Reason = "tripwire only: " + strings.Join(res.Missing, ", ")
	}
	return state, nil
}

// tellSwitched shows the operator what a caller brought about.
func (s *sidecar) tellSwitched(res proto.LLMResult) {
	level, text := switched(res)
	if res.Armed {
		text += "; `/a2mcp allow` switches it on again"
	}
	_ = s.host.Notify(level, "a2mcp: a caller switched this host's own model "+text)
}

// switched says what state the host's own model is in now, and what of it is not as
// it should be.
func switched(res proto.LLMResult) (level, text string) {
	missing := escape(strings.Join(res.Missing, ", "))
	switch {
	case res.Degraded:
		return proto.LevelWarning, "off, though not on every way (" + missing + ")"
	case res.Armed:
		return proto.LevelWarning, "off"
	case missing != "":
		return proto.LevelWarning, "on again; not as they were: " + missing
	}
	return proto.LevelInfo, "on again"
}

// allowInference gives inference back: the operator has the last word.
func (s *sidecar) allowInference(ctx context.Context) proto.Message {
	if !s.hasSwitch() {
		return proto.Message{Level: proto.LevelError, Text: httpfront.ErrNoSwitch.Error()}
	}
	began := time.Now()
	res, _, err := s.switchLLM(ctx, proto.LLMSet{Deny: false})
	if err != nil {
		s.front.RecordInference("", true, time.Since(began), err.Error())
		return proto.Message{Level: proto.LevelError, Text: "this host's own model stays off: " + escape(err.Error())}
	}
	s.front.RecordInference("", true, time.Since(began), "")
	level, text := switched(res)
	return proto.Message{Level: level, Text: "this host's own model is " + text}
}

// assertInference has the host say what it has brought about of its own accord at
// the start of a main session (D8, D11).
func (s *sidecar) assertInference(ctx context.Context) {
	if !s.hasSwitch() {
		return
	}
	limited, cancel := context.WithTimeout(ctx, startStateTimeout)
	state, err := s.host.State(limited)
	cancel()
	if err != nil || !state.LLM.Wanted {
		return // a host that does not answer is told of elsewhere
	}
	began := time.Now()
	res, _, err := s.switchLLM(ctx, proto.LLMSet{Deny: true, AtStart: true})
	var reason string
	switch {
	case err != nil:
		reason = err.Error()
		s.log.Error("takeover refused", "reason", reason)
	case res.Degraded:
		reason = "tripwire only: " + strings.Join(res.Missing, ", ")
	default:
		return
	}
	s.front.RecordInference("", false, time.Since(began), reason)
	_ = s.host.Notify(proto.LevelError, "a2mcp: this host's own model requests are not denied as host_llm asks: "+escape(reason))
}

// switchLLM is one llm/set; there is one at a time (D8). news is whether it changed
// anything.
func (s *sidecar) switchLLM(ctx context.Context, set proto.LLMSet) (res proto.LLMResult, news bool, err error) {
	s.switching.Lock()
	defer s.switching.Unlock()
	ctx, cancel := context.WithTimeout(ctx, switchTimeout)
	defer cancel()
	res, err = s.host.SetLLM(ctx, set)
	var refusal *hostrpc.Error
	switch {
	case errors.As(err, &refusal):
		return res, false, errors.New(refusal.Message) // the reason verbatim (D2)
	case err != nil:
		return res, false, fmt.Errorf("the host did not answer: %w", err)
	}
	return res, s.sayInference(res), nil
}

// sayInference logs what has changed, if anything has (D9, D7, D10).
func (s *sidecar) sayInference(res proto.LLMResult) (news bool) {
	line := ""
	switch {
	case res.Degraded:
		line = "takeover degraded: tripwire only: " + strings.Join(res.Missing, ", ")
	case res.Armed:
		pushed := "none"
		if res.ModelPushed != nil {
			pushed = *res.ModelPushed
		}
		line = fmt.Sprintf("takeover armed: %d provider(s) shadowed (%s), %d tripwire key(s), model pushed: %s",
			len(res.Shadowed), strings.Join(res.Shadowed, ", "), res.TripwireKeys, pushed)
	case len(res.Missing) > 0:
		line = fmt.Sprintf("takeover restore left %d provider(s) not serving their pre-arm rows (%s)", len(res.Missing), strings.Join(res.Missing, ", "))
	case s.saidInference != "":
		line = "takeover restored"
	}
	if line == "" || line == s.saidInference {
		return false
	}
	s.saidInference = line
	if res.Degraded || !res.Armed && len(res.Missing) > 0 {
		s.log.Warn(line)
	} else {
		s.log.Info(line)
	}
	return true
}

func (s *sidecar) hasSwitch() bool {
	return slices.Contains(s.hello.Load().Features, proto.FeatureLLM)
}

// inferenceLine is the switch in the status (D9, D10).
func (s *sidecar) inferenceLine(ctx context.Context) string {
	if !s.hasSwitch() {
		return "host_llm=allow"
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	state, err := s.host.State(ctx)
	switch {
	case err != nil:
		return "host_llm=unknown"
	case state.LLM.Degraded:
		return fmt.Sprintf("host_llm=deny (tripwire only) denied=%d", state.LLM.Denied)
	case state.LLM.Armed:
		return fmt.Sprintf("host_llm=deny denied=%d", state.LLM.Denied)
	}
	return fmt.Sprintf("host_llm=allow denied=%d", state.LLM.Denied)
}
