import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import http2 from "node:http2";
import { sentinel } from "../denial";
import { Tripwire } from "../tripwire";

const original = { fetch: globalThis.fetch, WebSocket: globalThis.WebSocket, connect: http2.connect };
let wire: Tripwire;
let counted: number;
let passed: string[];

beforeEach(() => {
	counted = 0;
	passed = [];
	const pass = async (input: unknown) => {
		passed.push(`fetch ${input instanceof Request ? input.url : input}`);
		return new Response("ok");
	};
	globalThis.fetch = Object.assign(pass, { preconnect: (url: unknown) => void passed.push(`preconnect ${url}`) }) as unknown as typeof fetch;
	globalThis.WebSocket = class {
		static readonly OPEN = 1;
		constructor(
			readonly url: unknown,
			readonly protocols?: unknown,
		) {}
	} as unknown as typeof WebSocket;
	(http2 as { connect: unknown }).connect = (url: unknown) => void passed.push(`http2 ${url}`);
	wire = new Tripwire(
		() => counted++,
		() => 33615,
	);
	wire.add("https://model.example/v1");
	wire.add("http://127.0.0.1:18080");
});

afterEach(() => {
	globalThis.fetch = original.fetch;
	globalThis.WebSocket = original.WebSocket;
	(http2 as { connect: unknown }).connect = original.connect;
});

const arm = () => wire.changes.forEach(change => change.make());
const restore = () => wire.changes.forEach(change => change.takeBack());

describe("keys", () => {
	// D3: told by host and port.
	test("are host and port", () => {
		expect([...wire.keys]).toEqual(["model.example", "127.0.0.1:18080"]);
		for (const met of ["https://model.example/x?y", "wss://model.example", "https://MODEL.example:443/", new URL("https://model.example"), new Request("http://127.0.0.1:18080/v1")]) {
			expect(wire.meets(met)).toBe(true);
		}
		for (const other of ["https://model.example:8443", "https://other.example", "http://127.0.0.1:18081", "/relative", "", undefined, null, 7, {}]) {
			expect(wire.meets(other)).toBe(false);
		}
		expect(wire.meets({ toString: () => "https://model.example/" })).toBe(true);
		expect(wire.meets(new String("https://model.example/"))).toBe(true);
	});

	test("are not made of what is no address", () => {
		for (const odd of ["", "nonsense", "file:///x"]) wire.add(odd);
		expect(wire.keys.size).toBe(2);
	});

	// O1: the bridge's own port is not one.
	test("are never the bridge itself", () => {
		for (const own of ["http://127.0.0.1:33615", "http://localhost:33615/", "http://[::1]:33615", "http://127.0.0.2:33615"]) wire.add(own);
		expect(wire.keys.size).toBe(2);
		wire.add("https://model.example:33615");
		expect(wire.keys.size).toBe(3);
	});
});

describe("fetch", () => {
	// D3: an answer, not an exception, which the host would take for a network error.
	test("is answered here for a model's host", async () => {
		arm();
		const answer = await fetch("https://model.example/v1/messages", { method: "post" });
		expect(answer.status).toBe(403);
		expect(await answer.json()).toEqual({ type: "error", error: { type: "permission_error", message: sentinel } });
		expect(counted).toBe(1);
		await fetch(new Request("https://model.example/v1", { method: "POST" }));
		expect(counted).toBe(2);
		await fetch(new URL("https://model.example/v1/models"));
		await fetch(new Request("https://model.example/v1/models"));
		await fetch("https://model.example/v1/models");
		expect(counted).toBe(2); // nobody asked for inference
		expect(passed).toEqual([]);
	});

	test("goes through for all others", async () => {
		arm();
		await fetch("https://other.example/a");
		await fetch(new URL("https://other.example/b"), { method: "POST" });
		await fetch(new Request("https://other.example/c"));
		expect(passed).toEqual(["fetch https://other.example/a", "fetch https://other.example/b", "fetch https://other.example/c"]);
		expect(counted).toBe(0);
	});

	test("opens no connection ahead", () => {
		arm();
		fetch.preconnect("https://model.example");
		fetch.preconnect("https://other.example");
		expect(passed).toEqual(["preconnect https://other.example"]);
	});

	// D7: the original reference.
	test("is the original again afterwards", () => {
		const before = globalThis.fetch;
		arm();
		arm();
		restore();
		expect(globalThis.fetch).toBe(before);
		restore();
		expect(globalThis.fetch).toBe(before);
	});

	/** Puts what another extension might put over it. */
	function over(): typeof fetch {
		const beneath = globalThis.fetch;
		const wrapper = Object.assign((...args: Parameters<typeof fetch>) => beneath(...args), { preconnect: beneath.preconnect }) as typeof fetch;
		globalThis.fetch = wrapper;
		return wrapper;
	}

	// D7: somebody else's wrapper is not ours to take away.
	test("that somebody has wrapped since stays wrapped, and lets through", async () => {
		arm();
		const wrapper = over();
		expect((await fetch("https://model.example")).status).toBe(403);
		restore();
		expect(globalThis.fetch).toBe(wrapper);
		expect((await fetch("https://model.example")).status).toBe(200);
		arm();
		expect((await fetch("https://model.example", { method: "POST" })).status).toBe(403);
		expect(counted).toBe(1); // once, though it is there twice
		restore();
		expect(globalThis.fetch).toBe(wrapper);
		expect((await fetch("https://model.example")).status).toBe(200);
	});

	// D3: whoever takes his wrapper away, or puts something new, does not open the way.
	test("is closed again by the next arming, whatever became of it", async () => {
		const first = globalThis.fetch;
		arm();
		const ours = globalThis.fetch;
		over();
		restore();
		globalThis.fetch = ours; // the wrapper is taken away
		arm();
		expect((await fetch("https://model.example")).status).toBe(403);
		restore();
		expect((await fetch("https://model.example")).status).toBe(200);
		arm();
		expect((await fetch("https://model.example")).status).toBe(403);
		globalThis.fetch = first; // replaced altogether, and the wish re-asserted
		arm();
		expect((await fetch("https://model.example")).status).toBe(403);
		restore();
		expect(globalThis.fetch).toBe(first);
	});
});

// D3: the codex web socket. It is made, to where nobody listens.
test("a web socket to a model goes nowhere", () => {
	const before = globalThis.WebSocket;
	arm();
	expect(new WebSocket("wss://model.example/x", "p")).toMatchObject({ url: "ws://127.0.0.1:1", protocols: "p" });
	expect(new WebSocket(new URL("wss://model.example/x")).url).toBe("ws://127.0.0.1:1");
	const free = new WebSocket("wss://other.example/", ["a"]);
	expect(free).toMatchObject({ url: "wss://other.example/", protocols: ["a"] });
	expect(free).toBeInstanceOf(before);
	expect(free).toBeInstanceOf(WebSocket);
	expect(WebSocket.OPEN).toBe(1);
	const ours = globalThis.WebSocket;
	restore();
	expect(globalThis.WebSocket).toBe(before);
	expect(new ours("wss://model.example/x").url).toBe("wss://model.example/x"); // kept by somebody: lets through
	expect(counted).toBe(0);
});

// D3: cursor's HTTP/2.
test("an HTTP/2 connection to a model is refused and counted", () => {
	const before = http2.connect;
	arm();
	expect(() => http2.connect("https://model.example")).toThrow(sentinel);
	expect(() => http2.connect(new URL("https://model.example"))).toThrow(sentinel);
	http2.connect("https://other.example");
	expect(passed).toEqual(["http2 https://other.example"]);
	expect(counted).toBe(2);
	restore();
	expect(http2.connect).toBe(before);
});
