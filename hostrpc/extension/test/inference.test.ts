import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import * as fs from "node:fs";
import http2 from "node:http2";
import * as os from "node:os";
import * as path from "node:path";
import { sentinel } from "../denial";
import { Inference } from "../inference";
import { deadEnd } from "../redirects";
import { Sessions } from "../sessions";
import { FakeHost, type FakeSession, type Row, row, settle } from "./fake";

let host: FakeHost;
let main: FakeSession;
let sessions: Sessions;
let inference: Inference;
let denied: number[];
let ownPort: number;
let config: string;
const original = { fetch: globalThis.fetch, WebSocket: globalThis.WebSocket, connect: http2.connect };
const realEnv = process.env.A2MCP_CONFIG;

function make(): Inference {
	return new Inference(
		host.real,
		sessions,
		() => ownPort,
		total => denied.push(total),
	);
}

beforeEach(() => {
	config = path.join(fs.mkdtempSync(path.join(os.tmpdir(), "a2mcp-unit-")), "a2mcp.json");
	process.env.A2MCP_CONFIG = config;
	host = new FakeHost();
	main = host.main();
	sessions = new Sessions(host.real.registry);
	denied = [];
	ownPort = 0;
	inference = make();
});

afterEach(() => {
	for (const [name, value] of Object.entries({ fetch: original.fetch, WebSocket: original.WebSocket })) {
		Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: true });
	}
	Object.defineProperty(http2, "connect", { value: original.connect, writable: true, configurable: true, enumerable: true });
	fs.rmSync(path.dirname(config), { recursive: true });
	if (realEnv === undefined) delete process.env.A2MCP_CONFIG;
	else process.env.A2MCP_CONFIG = realEnv;
});

/** Everything of the host that the switch touches. */
const snapshot = () => ({
	rows: structuredClone(host.models.rows),
	models: host.registry.refs.map(ref => ({ ...ref.session?.model })),
	overrides: [...host.settings.overrides].sort(),
	apis: [...host.ai.apis.keys()],
	fetch: globalThis.fetch,
	WebSocket: globalThis.WebSocket,
	connect: http2.connect,
});

/** Counts writes to what the whole process shares as steps of the host. */
function watch(holder: object, key: string): void {
	let value = Reflect.get(holder, key) as unknown;
	Object.defineProperty(holder, key, {
		configurable: true,
		enumerable: true,
		get: () => value,
		set: (next: unknown) =>
			host.faults.step(`set ${key}`, () => {
				value = next;
			}),
	});
}

function watchAll(): void {
	watch(globalThis, "fetch");
	watch(globalThis, "WebSocket");
	watch(http2, "connect");
}

const at = (provider: string) => host.models.rows.filter(r => r.provider === provider).map(r => r.baseUrl);

describe("arming", () => {
	// D3, D9: every way out is closed, and what was done is told.
	test("closes every way to a model", () => {
		expect(inference.set(true)).toEqual({
			armed: true,
			degraded: false,
			denied: 0,
			shadowed: ["anthropic", "openai-codex", "cursor"],
			tripwireKeys: 5,
			modelPushed: "mock/small",
			missing: [],
		});
		expect(main.model).toMatchObject({ provider: "mock", id: "small", api: "a2mcp-deny", resolveHeaders: undefined });
		for (const provider of ["anthropic", "openai-codex", "cursor"]) expect(at(provider)).toEqual([deadEnd]);
		expect(at("mock")).toEqual(["http://127.0.0.1:18080"]);
		expect(globalThis.fetch).not.toBe(original.fetch);
		expect(inference.state).toEqual({ wanted: true, armed: true, degraded: false, denied: 0 });
	});

	// D3: the row counts and fails at once; the probe of the arming does not count.
	test("makes the session's own row fail in one attempt", async () => {
		inference.set(true);
		expect(denied).toEqual([]);
		const stream = host.ai.streamSimple(main.model as Row);
		await settle();
		expect(stream.events).toMatchObject([{ type: "error", reason: "error", error: { errorMessage: sentinel, stopReason: "error", model: "small" } }]);
		expect(denied).toEqual([1]);
		expect(inference.state.denied).toBe(1);
	});

	// D8: the llm/set that follows the host's own arming changes nothing.
	test("again changes nothing", () => {
		const first = inference.set(true);
		const armed = snapshot();
		host.faults.begin(0);
		expect(inference.set(true)).toEqual(first);
		inference.assert();
		expect(snapshot()).toEqual(armed);
		expect(host.faults.steps).toEqual(["deny api", "probe", "deny api", "probe"]); // an override of the registry rebuilds it
		inference.set(false);
		expect(globalThis.fetch).toBe(original.fetch);
	});

	// D5: refused before anything changes.
	test("is refused without a live main session", () => {
		host.registry.refs = [];
		const before = snapshot();
		expect(() => inference.set(true)).toThrow("there is no live main session");
		inference.assert();
		expect(snapshot()).toEqual(before);
		expect(inference.state).toEqual({ wanted: false, armed: false, degraded: false, denied: 0 });
	});

	// D5: omp serves a transport before an extension can refuse.
	test("is refused with a provider that has a transport", () => {
		host.models.rows.push({ ...row("pi", "native", "x", "http://pi.example"), transport: "pi-native" });
		const before = snapshot();
		expect(() => inference.set(true)).toThrow("provider pi uses the transport pi-native");
		expect(snapshot()).toEqual(before);
		expect(inference.state.armed).toBe(false);
	});

	// D10: refused while it is on: what is there stays, and the answer says so.
	test("that is refused while on leaves a degraded switch", () => {
		inference.set(true);
		host.models.rows.push({ ...row("pi", "native", "x", "http://pi.example"), transport: "pi-native" });
		const armed = snapshot();
		expect(inference.set(true)).toMatchObject({ armed: true, degraded: true, missing: [expect.stringContaining("pi-native")] });
		expect(snapshot()).toEqual(armed);
		expect(inference.state).toMatchObject({ wanted: true, armed: true, degraded: true });
		host.models.rows.pop();
		expect(inference.set(true)).toMatchObject({ armed: true, degraded: false, missing: [] });
		expect(inference.set(false)).toMatchObject({ armed: false, degraded: false });
	});

	// D8: what something has undone is brought about again, where the wish is deny.
	test("is brought about again", () => {
		inference.assert();
		expect(inference.state.armed).toBe(false);
		inference.set(true);
		const other = row("mock", "large", "anthropic-messages", "http://127.0.0.1:18080");
		host.models.rows.push(other);
		main.model = other; // a resumed session brings its own row
		host.models.rows = host.models.rows.map(r => (r.provider === "cursor" ? { ...r, baseUrl: "https://api2.cursor.sh" } : r));
		host.ai.apis.clear();
		inference.assert();
		expect(main.model).toMatchObject({ id: "large", api: "a2mcp-deny" });
		expect(at("cursor")).toEqual([deadEnd]);
		expect(host.ai.apis.has("a2mcp-deny")).toBe(true);
		inference.set(false);
		expect(main.model as unknown).toBe(other); // the row found there is what comes back
		expect(at("cursor")).toEqual(["https://api2.cursor.sh"]);
	});

	test("covers sessions that begin later", () => {
		inference.set(true);
		const second = host.main("acp:2", 2);
		inference.assert();
		expect(second.model?.api).toBe("a2mcp-deny");
		inference.set(false);
		expect([main.model?.api, second.model?.api]).toEqual(["anthropic-messages", "anthropic-messages"]);
		expect(host.settings.overrides.size).toBe(0);
	});

	test("does without a model row", () => {
		main.model = undefined;
		expect(inference.set(true)).toMatchObject({ armed: true, modelPushed: null });
		inference.set(false);
		expect(main.model).toBeUndefined();
	});

	// D3: a host whose library is there twice would not notice the deny row.
	test("is refused when the deny row is not reached", () => {
		const before = snapshot();
		host.ai.registerCustomApi = () => {};
		host.ai.streamSimple = () => host.ai.createAssistantMessageEventStream();
		expect(() => inference.set(true)).toThrow("did not reach it");
		expect(snapshot()).toEqual(before);
	});
});

// D6: whatever step fails, before or after its effect, all are rolled back.
describe.each([false, true])("a failure, its effect there: %p,", late => {
	test("at any step of arming leaves everything as it was", () => {
		host.settings.override("advisor.enabled", true); // the operator's own
		watchAll();
		const before = snapshot();
		host.faults.begin(0);
		inference.set(true);
		const steps = host.faults.steps.length;
		expect(steps).toBeGreaterThan(12);
		inference.set(false);
		expect(snapshot()).toEqual(before);
		for (let step = 1; step <= steps; step++) {
			host.faults.begin(step, late);
			expect(() => inference.set(true)).toThrow("injected");
			expect({ step, ...snapshot() }).toEqual({ step, ...before });
			expect(inference.state).toMatchObject({ wanted: false, armed: false });
		}
		host.faults.begin(0);
		expect(inference.set(true).armed).toBe(true);
	});

	test("at any step of restoring leaves everything denied", () => {
		host.settings.override("advisor.enabled", true);
		watchAll();
		const before = snapshot();
		inference.set(true);
		const armed = snapshot();
		host.faults.begin(0);
		inference.set(false);
		const steps = host.faults.steps.length;
		expect(steps).toBeGreaterThan(12);
		inference.set(true);
		for (let step = 1; step <= steps; step++) {
			host.faults.begin(step, late);
			expect(() => inference.set(false)).toThrow("injected");
			const { fetch, WebSocket, connect, ...rest } = snapshot();
			const { fetch: _f, WebSocket: _w, connect: _c, ...want } = armed;
			expect({ step, ...rest }).toEqual({ step, ...want });
			expect([fetch !== before.fetch, WebSocket !== before.WebSocket, connect !== before.connect]).toEqual([true, true, true]);
			expect(inference.state).toMatchObject({ wanted: true, armed: true });
		}
		host.faults.begin(0);
		expect(inference.set(false)).toMatchObject({ armed: false, missing: [] });
		expect(snapshot()).toEqual(before);
	});

	// D8: a repeat that fails lets nothing through that was denied.
	test("at any step of arming again leaves everything denied", () => {
		watchAll();
		inference.set(true);
		const rebuild = () => {
			host.models.rows.push(row("cursor-2", "x", "cursor-agent", "https://other.example"));
			host.main("acp:2", 2);
		};
		rebuild();
		host.faults.begin(0);
		inference.set(true);
		const steps = host.faults.steps.length;
		for (let step = 1; step <= steps; step++) {
			inference.set(false);
			host.models.rows.pop();
			host.registry.refs.pop();
			inference.set(true);
			rebuild();
			const armed = snapshot();
			host.faults.begin(step, late);
			expect(() => inference.set(true)).toThrow("injected");
			host.faults.begin(0);
			expect({ step, ...snapshot() }).toEqual({ step, ...armed });
			expect(inference.state).toMatchObject({ wanted: true, armed: true });
		}
	});
});

describe("restoring", () => {
	// D1: with nothing armed it is a no-op.
	test("with nothing armed changes nothing", () => {
		const before = snapshot();
		expect(inference.set(false)).toMatchObject({ armed: false, missing: [], shadowed: [], tripwireKeys: 0 });
		expect(snapshot()).toEqual(before);
	});

	// D7: a row that the operator chose meanwhile stays, with its real address.
	test("keeps a row that was chosen meanwhile", () => {
		inference.set(true);
		main.model = host.models.find("anthropic", "claude");
		expect(main.model?.baseUrl).toBe(deadEnd);
		inference.set(false);
		expect(main.model).toEqual(row("anthropic", "claude", "anthropic-messages", "https://api.anthropic.com"));
	});

	test("names a row whose address it could not give back", () => {
		inference.set(true);
		main.model = host.models.find("anthropic", "claude");
		main.agent.setModel = () => {
			throw new Error("no");
		};
		expect(inference.set(false)).toMatchObject({ armed: false, missing: ["anthropic"] });
		expect(inference.state.wanted).toBe(false);
	});

	// D7: rows of one provider with several addresses get one of them back; what did not come back is named.
	test("names what did not come back", () => {
		host.models.rows.push(row("cursor", "second", "cursor-agent", "https://eu.cursor.sh"));
		inference.set(true);
		expect(inference.set(false).missing).toEqual(["cursor"]);
	});

	// D4: an override of the operator's own is there again, and a configured value is not hidden by one.
	test("gives the operator's overrides back", () => {
		host.settings.override("advisor.enabled", true);
		inference.set(true);
		expect(host.settings.get("advisor.enabled")).toBe(false);
		expect(host.settings.get("retry.enabled")).toBe(false);
		expect(host.settings.get("features.unexpectedStopDetection")).toBe("none");
		expect(host.settings.get("bash.autoBackground.enabled")).toBe(true);
		expect(host.settings.overrides.has("todo.reminders")).toBe(false); // this version does not have it
		host.settings.values.set("compaction.enabled", false); // edited while denied
		inference.set(false);
		expect([...host.settings.overrides]).toEqual([["advisor.enabled", true]]);
		expect(host.settings.get("compaction.enabled")).toBe(false);
	});
});

describe("the wish at load", () => {
	const loaded = (text: string) => {
		fs.writeFileSync(config, text);
		return make();
	};

	// D8: the configuration's word; a broken file still says what was meant.
	test("is the configuration's", () => {
		expect(make().state.wanted).toBe(false); // no file yet
		expect(loaded('{"host_llm": "deny"}').state).toMatchObject({ wanted: true, armed: false });
		expect(loaded('{"host_llm": "allow"}').state.wanted).toBe(false);
		expect(loaded("{}").state.wanted).toBe(false);
		expect(loaded("null").state.wanted).toBe(false);
		expect(loaded('{"host_llm": "deny",').state.wanted).toBe(true);
		expect(loaded('{"host_llm": "allow",').state.wanted).toBe(false);
		delete process.env.A2MCP_CONFIG;
		host.agentDir = path.dirname(config);
		expect(loaded('{"host_llm": "deny"}').state.wanted).toBe(true);
	});

	// D4: what counts only when a tool is built is set at load, and only under a deny.
	test("decides on what is read when a tool is built", () => {
		loaded('{"host_llm": "allow"}');
		expect(host.settings.overrides.size).toBe(0);
		host.faults.begin(1);
		const switched = loaded('{"host_llm": "deny"}');
		expect([...host.settings.overrides]).toEqual([["async.enabled", false]]);
		expect(host.log.join()).toContain("bash.autoBackground.enabled"); // the one that failed
		switched.assert(); // the host arms by itself, whether a sidecar is there or not (D11)
		expect(switched.state.armed).toBe(true);
		switched.set(false);
		expect(host.settings.overrides.has("async.enabled")).toBe(true);
	});
});

test("what this host lacks is named", () => {
	expect(Inference.lacks(host.real)).toEqual([]);
	const bare = { ...host.real, ai: undefined, pi: {} } as never;
	expect(Inference.lacks(bare)).toEqual([
		"registerCustomApi",
		"unregisterCustomApis",
		"streamSimple",
		"createAssistantMessageEventStream",
		"settings",
	]);
});

// O1, D3: a loopback host of the bridge's own port is never refused, under any of its names.
test("the bridge's own port is never a key", async () => {
	const seen: string[] = [];
	const pass = async (input: unknown) => {
		seen.push(String(input));
		return new Response("ok");
	};
	globalThis.fetch = Object.assign(pass, { preconnect: () => {} }) as unknown as typeof fetch;
	const names = ["127.0.0.1", "localhost", "[::1]"];
	host.models.rows = names.map(name => row("own", name, "openai-completions", `http://${name}:33615/v1`));
	main.model = undefined;
	inference.set(true); // the port is not known yet
	expect((await fetch("http://localhost:33615/")).status).toBe(403);
	ownPort = 33615;
	for (const name of names) expect((await fetch(`http://${name}:33615/`)).status).toBe(200);
	expect(seen.length).toBe(3);
	inference.set(false);
	const later = make();
	expect(later.set(true).tripwireKeys).toBe(1); // the dead end
	later.set(false);
});
