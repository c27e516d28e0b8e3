package host

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// probeSource is a second extension, as others have them: it owns a provider,
// and tells on request what the switch may have changed in this process.
const probeSource = `
import * as fs from "node:fs";
import http2 from "node:http2";
import { createHash } from "node:crypto";

const first = { fetch: globalThis.fetch, socket: globalThis.WebSocket, connect: http2.connect };
const paths = ["retry.enabled", "retry.maxRetries", "ttsr.enabled", "compaction.enabled", "todo.reminders", "advisor.enabled",
	"bash.autoBackground.enabled", "async.enabled", "title.refreshOnReplan"];

export default function (pi) {
	pi.registerProvider("other", { baseUrl: "http://127.0.0.1:9/v1", apiKey: "x", api: "openai-completions",
		models: [{ id: "row", name: "Row", reasoning: false, input: ["text"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
			contextWindow: 1000, maxTokens: 100 }] });
	pi.on("session_start", (_event, ctx) => {
		const main = pi.pi.AgentRegistry.global().list().find(ref => ref.kind === "main" && ref.session);
		if (!main || main.session.sessionManager.getSessionId() !== ctx.sessionManager.getSessionId()) return;
		main.session.settings.override("advisor.enabled", true); // an operator's own
		ctx.setInterval(() => {
			const ask = process.env.PROBE + ".ask";
			if (!fs.existsSync(ask)) return;
			fs.unlinkSync(ask);
			const rows = main.session.modelRegistry.getAll().map(row => [row.provider, row.id, row.api, row.baseUrl].join(" "));
			const told = {
				rows: rows.length,
				digest: createHash("sha256").update(rows.join("\n")).digest("hex").slice(0, 16),
				other: rows.filter(row => row.startsWith("other ")),
				model: [main.session.model?.provider, main.session.model?.id, main.session.model?.api].join(" "),
				fetch: globalThis.fetch === first.fetch,
				socket: globalThis.WebSocket === first.socket,
				connect: http2.connect === first.connect,
				settings: paths.map(path => path + "=" + main.session.settings.get(path)),
			};
			fs.writeFileSync(process.env.PROBE + ".new", JSON.stringify(told, null, 1));
			fs.renameSync(process.env.PROBE + ".new", process.env.PROBE);
		}, 20);
	});
}
`

// probed adds the second extension to a place.
func (p *place) probed() {
	p.t.Helper()
	p.env = append(p.env, "PROBE="+filepath.Join(p.work, "probe"))
	p.write(filepath.Join(p.agent, "extensions", "probe.ts"), probeSource)
}

// probe asks it.
func (p *place) probe() string {
	p.t.Helper()
	path := filepath.Join(p.work, "probe")
	_ = os.Remove(path)
	p.write(path+".ask", "")
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if data, err := os.ReadFile(path); err == nil {
			return strings.TrimSpace(string(data))
		}
		if time.Now().After(deadline) {
			p.t.Fatal("the probe does not answer")
		}
	}
}
