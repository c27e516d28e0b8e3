import { beforeEach, describe, expect, mock, test } from "bun:test";
import { detectHost } from "../host";
import { registerOffline, settleModel } from "../offline";
import { FakeAPI, FakeContext, FakeHost, type FakeSession, type Row, row, settle } from "./fake";

let host: FakeHost;
let api: FakeAPI;
let main: FakeSession;
let ctx: FakeContext;
const offline = row("a2mcp", "offline", "a2mcp-offline", "http://a2mcp.invalid/v1");
const [real, other] = [row("mock", "small", "x", "http://a"), row("mock", "large", "x", "http://a")];

beforeEach(() => {
	host = new FakeHost();
	api = new FakeAPI(host);
	main = host.main();
	ctx = new FakeContext(main);
	main.model = undefined;
	ctx.choice = [offline];
});

describe("the placeholder", () => {
	// O1: its address is no loopback one, so that it is no key of this machine.
	test("is offered while the extension loads", async () => {
		registerOffline(api.real, host.real);
		const provider = api.providers.get("a2mcp") as { baseUrl: string; models: Row[]; streamSimple(model: Row): ReturnType<typeof host.ai.streamSimple> };
		expect(provider.baseUrl).toBe("http://a2mcp.invalid/v1");
		expect(provider.models.map(model => model.id)).toEqual(["offline"]);
		// A prompt to it ends at once, in one attempt, with a text that says what to do.
		const stream = provider.streamSimple(offline);
		await settle();
		expect(stream.events).toMatchObject([{ type: "error", error: { errorMessage: expect.stringContaining("/login"), model: "offline" } }]);
	});

	test("that cannot be offered is no reason not to load", () => {
		api.registerProvider = () => {
			throw new Error("no");
		};
		registerOffline(api.real, host.real);
		expect(host.log.length).toBe(1);
	});

	// O1: into an empty slot, with a notice.
	test("fills an empty slot", async () => {
		expect(await settleModel(api.real, ctx.real)).toContain("a placeholder is selected");
		expect(api.chosen).toEqual([offline]);
	});

	test("is not there to fill it", async () => {
		ctx.choice = [];
		expect(await settleModel(api.real, ctx.real)).toBeUndefined();
		ctx.choice = [offline];
		api.setModel = async () => false;
		expect(await settleModel(api.real, ctx.real)).toBeUndefined();
	});

	// O1: it never wins over a real model; an empty slot with real ones is the operator's choice.
	test("is never chosen over a real model", async () => {
		ctx.choice = [offline, real];
		expect(await settleModel(api.real, ctx.real)).toBeUndefined();
		main.model = real;
		ctx.choice = [offline];
		expect(await settleModel(api.real, ctx.real)).toBeUndefined();
		expect(api.chosen).toEqual([]);
	});

	// O1: a resumed session that remembers it is moved to a real model, the default one if there is one.
	test("gives way when a session is resumed", async () => {
		main.model = offline;
		ctx.choice = [offline, real, other];
		expect(await settleModel(api.real, ctx.real)).toContain("it uses mock/small now");
		ctx.preferred = other;
		expect(await settleModel(api.real, ctx.real)).toContain("it uses mock/large now");
		ctx.preferred = offline;
		expect(await settleModel(api.real, ctx.real)).toContain("it uses mock/small now");
		expect(api.chosen).toEqual([real, other, real]);
		api.setModel = async () => false;
		expect(await settleModel(api.real, ctx.real)).toBeUndefined();
	});

	test("stays, with a word, where there is nothing else", async () => {
		main.model = offline;
		expect(await settleModel(api.real, ctx.real)).toContain("this host has no model");
		expect(api.chosen).toEqual([]);
	});
});

describe("the pieces of the host", () => {
	test("are found", async () => {
		mock.module("@oh-my-pi/pi-ai", () => ({ ...host.ai }));
		const found = await detectHost(api.real);
		expect(found).toMatchObject({ version: "18.2.3", agentDir: "/nowhere", missing: [] });
		expect(found.registry as unknown).toBe(host.registry);
		expect(found.wireSchema({ parameters: { a: 1 } } as never)).toEqual({ a: 1 });
		const strict = { check: (args: unknown) => ({ checked: args }) } as never;
		expect(found.validate(strict, { id: "c", name: "t", arguments: 7 })).toEqual({ checked: 7 });
	});

	// What is missing is named, and costs what needs it alone.
	test("that are missing are named", async () => {
		mock.module("@oh-my-pi/pi-ai", () => ({ toolWireSchema: undefined, validateToolArguments: undefined }));
		const bare = { ...api, pi: { getAgentDir: () => "/nowhere" }, logger: host.logger } as never;
		const found = await detectHost(bare);
		expect(found.missing).toEqual(["toolWireSchema", "validateToolArguments", "AgentRegistry"]);
		expect(found.version).toBe("unknown");
		expect(found.wireSchema({} as never)).toEqual({ type: "object" });
		expect(found.validate({} as never, { id: "c", name: "t", arguments: 7 })).toBe(7);
	});
});
