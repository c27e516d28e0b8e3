package host

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// directSource is an extension that calls a tool inside the host as often as the
// bridge does, without the bridge: what a call costs by itself.
const directSource = `
import * as fs from "node:fs";
export default function (pi) {
	pi.on("session_start", (_event, ctx) => {
		const main = pi.pi.AgentRegistry.global().list().find(ref => ref.kind === "main" && ref.session)?.session;
		if (!main) return;
		ctx.setTimeout(async () => {
			const tool = main.getToolByName("todo");
			const times = [];
			for (let i = 0; i < 1200; i++) {
				const began = performance.now();
				await tool.execute("direct-" + i, { op: "view" });
				times.push(performance.now() - began);
			}
			fs.writeFileSync(process.env.DIRECT + ".new", JSON.stringify(times.slice(200)));
			fs.renameSync(process.env.DIRECT + ".new", process.env.DIRECT);
		}, 500);
	});
}
`

// TestOverhead measures what the way through the bridge adds to a call: the same
// cheap tool, a thousand times inside the host and a thousand times over HTTP on
// one connection, in one process, one after the other.
func TestOverhead(t *testing.T) {
	p := newPlace(t)
	hold := make(chan struct{})
	p.model(newProvider(t, func(string, int) reply { return reply{text: "hello there", hold: hold} }))
	direct := filepath.Join(p.work, "direct")
	p.env = append(p.env, "DIRECT="+direct)
	p.write(filepath.Join(p.agent, "extensions", "direct.ts"), directSource)
	h := p.start("-p", "speak") // no screen and no client that would have to be served too
	_ = h.stdin.Close()
	defer close(hold)
	b := p.bridge().connect()
	waitFor(t, "the calls inside the host", func() bool { _, err := os.Stat(direct); return err == nil })
	var inside []float64
	data, err := os.ReadFile(direct)
	if err == nil {
		err = json.Unmarshal(data, &inside)
	}
	if err != nil {
		t.Fatal(err)
	}
	var through []float64
	for i := range 1200 {
		began := time.Now()
		b.works("todo", map[string]any{"op": "view"})
		if i >= 200 {
			through = append(through, float64(time.Since(began))/float64(time.Millisecond))
		}
	}
	slices.Sort(inside)
	slices.Sort(through)
	at := func(sorted []float64, q float64) float64 { return sorted[int(q*float64(len(sorted)-1))] }
	t.Logf("inside the host: median %.3f ms, p99 %.3f ms; through the bridge: median %.3f ms, p99 %.3f ms; added: median %.3f ms",
		at(inside, .5), at(inside, .99), at(through, .5), at(through, .99), at(through, .5)-at(inside, .5))
	if added := at(through, .5) - at(inside, .5); added > 5 {
		t.Errorf("the bridge adds %.3f ms to a call", added)
	}
}
