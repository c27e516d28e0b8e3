package host

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rude is an extension whose tools return and declare what they should not.
const rude = `
export default function (pi) {
	const T = pi.typebox.Type ?? pi.typebox;
	const add = (name, parameters, execute, more) => pi.registerTool({ name, label: name, description: name, parameters, execute, ...more });
	const text = t => ({ content: [{ type: "text", text: t }] });
	add("bigint", T.Object({}), async () => ({ content: [{ type: "text", text: "x", n: 10n }] }), { approval: "read" });
	add("bigschema", { type: "object", properties: { n: { type: "integer", maximum: 10n } } }, async () => text(""), { approval: "read" });
	add("alone", T.Object({}), async () => text("alone"), { approval: "read", concurrency: "exclusive" });
	add("asks", T.Object({}), async () => text("asked"), { approval: "exec", concurrency: "exclusive" });
}
`

// TestAbuse: neither a caller's arguments nor another extension's tools hold up the
// host, a call or the catalogue.
func TestAbuse(t *testing.T) {
	p := newPlace(t)
	p.write(filepath.Join(p.agent, "extensions", "rude.ts"), rude)
	p.model(newProvider(t, says("hello")))
	h := p.start("--mode", "rpc", "--approval-mode", "always-ask")
	b := p.bridge().connect()
	soon := func(what string, within time.Duration, do func()) {
		t.Helper()
		began := time.Now()
		do()
		if took := time.Since(began); took > within {
			t.Errorf("%s took %s", what, took)
		}
	}
	soon("the catalogue", 8*time.Second, func() {
		if schema := string(b.tools()["bigschema"]); schema != `{"type":"object"}` {
			t.Errorf("a schema that is no JSON: %s", schema)
		}
	})
	soon("deep arguments", 10*time.Second, func() {
		deep := json.RawMessage(strings.Repeat("[", 9900) + strings.Repeat("]", 9900))
		if res := b.call("eval", map[string]any{"code": deep}); !res.IsError || !strings.Contains(res.text(), "nested deeper") {
			t.Errorf("deep arguments: %.200v", res)
		}
	})
	soon("a result that is no JSON", 10*time.Second, func() {
		if res := b.call("bigint", nil); !res.IsError {
			t.Errorf("a result that is no JSON: %+v", res)
		}
	})
	answered := make(chan result, 1)
	go func() { answered <- b.callAs("one", "asks", map[string]any{}) }()
	h.wait("question", uiRequest("select", ""))
	b.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"one"}}`)
	<-answered
	soon("an exclusive call after a cancelled question", 10*time.Second, func() { b.works("alone", map[string]any{}) })
}
