import { afterEach, beforeEach, describe, expect, mock, setDefaultTimeout, test } from "bun:test";
import * as fs from "node:fs";
import * as path from "node:path";
import { Bridge } from "../bridge";
import { RpcError } from "../channel";
import { FakeAPI, type FakeCommand, FakeContext, FakeHost, type FakeSession, gate, type Result, row, said, settle, tool } from "./fake";
import { FakeSidecar, type Link, silence } from "./fakesidecar";

setDefaultTimeout(20_000); // each starts processes, and a machine may be busy

const key = Symbol.for("a2mcp.bridge.v1");
const original = { fetch: globalThis.fetch, env: { ...process.env } };
let there: FakeSidecar;
let host: FakeHost;
let api: FakeAPI;
let main: FakeSession;
let ctx: FakeContext;

beforeEach(() => {
	there = new FakeSidecar();
	process.env.A2MCP_BINARY = there.binary;
	process.env.A2MCP_CONFIG = path.join(there.folder, "a2mcp.json");
	host = new FakeHost();
	api = new FakeAPI(host);
	main = host.main();
	ctx = new FakeContext(main);
	mock.module("@oh-my-pi/pi-ai", () => ({ ...host.ai }));
	delete (globalThis as { [key]?: unknown })[key];
});

afterEach(() => {
	there.stop();
	expect(globalThis.fetch).toBe(original.fetch);
	for (const name of ["A2MCP_BINARY", "A2MCP_CONFIG"]) {
		if (original.env[name] === undefined) delete process.env[name];
		else process.env[name] = original.env[name];
	}
});

/** A bridge with its first session begun. */
async function begin(): Promise<Link> {
	new Bridge(there.folder).attach(api.real, host.real);
	await api.emit("session_start", ctx);
	return there.link();
}

const command = (args: string, from = ctx) => (api.commands.get("a2mcp") as FakeCommand).handler(args, from.real);

describe("hello", () => {
	test("tells of the host", async () => {
		const link = await begin();
		expect(link.received[0]).toEqual({
			jsonrpc: "2.0",
			id: "h1",
			method: "hello",
			params: {
				protocol: 1,
				host: { name: "omp", version: "18.2.3", mode: "tui", pid: process.pid },
				agentDir: "/nowhere",
				home: process.env.HOME ?? "",
				cwd: "/work/Main",
				features: ["cancel", "tool_state", "progress", "exclusive", "tools_changed", "remember", "cards", "llm"],
				memory: null,
			},
		} as never);
	});

	// D2: no switch where the host lacks what it takes; the rest is served all the same.
	test("does not promise what this host lacks", async () => {
		delete main.agent.emitExternalEvent;
		const bare = { ...host.real, ai: undefined, pi: {} } as typeof host.real;
		new Bridge(there.folder).attach(api.real, bare);
		await api.emit("session_start", ctx);
		await api.emit("before_agent_start", ctx);
		const link = await there.link();
		const features = link.all("hello")[0]?.features as string[];
		expect(features).not.toContain("llm");
		expect(features).not.toContain("cards");
		expect(bare.missing).toContain("registerCustomApi");
		expect(host.log.join()).toContain("this host lacks something");
		expect(await link.ask("llm/set", { deny: true, atStart: true }).catch(error => error)).toMatchObject({
			code: -32601,
			message: expect.stringContaining("registerCustomApi"),
		});
		expect(await link.ask<unknown>("host_state")).toEqual({ mains: 1, llm: { wanted: false, armed: false, degraded: false, denied: 0 } });
	});

	test("tells ACP by the ids of its sessions", async () => {
		for (const ref of host.registry.refs) ref.id = "acp:1";
		ctx.mode = "rpc";
		const link = await begin();
		expect(link.all("hello")).toMatchObject([{ host: { mode: "acp" } }]);
	});

	test("tells the mode though the registry spoke first", async () => {
		ctx.mode = "print";
		ctx.hasUI = false;
		new Bridge(there.folder).attach(api.real, host.real);
		host.registry.emit("status_changed");
		await api.emit("session_start", ctx);
		const link = await there.link();
		expect(link.all("hello")).toMatchObject([{ host: { mode: "print" } }]);
		expect(link.all("session_start")).toMatchObject([{ hasUI: false }]);
	});
});

describe("sessions", () => {
	// P1: each main once on each connection, whatever number of instances there is.
	test("are announced once, by one sidecar for all instances", async () => {
		const bridge = new Bridge(there.folder);
		bridge.attach(api.real, host.real);
		const again = new FakeAPI(host);
		bridge.attach(again.real, host.real);
		await Promise.all([api.emit("session_start", ctx), again.emit("session_start", ctx)]);
		const second = new FakeContext(host.main("second", 2));
		second.hasUI = false;
		await again.emit("session_start", second);
		const link = await there.link();
		expect(link.all("session_start")).toEqual([
			{ sessionId: "Main", isMain: true, hasUI: true, cwd: "/work/Main", mains: 1 },
			{ sessionId: "second", isMain: true, hasUI: false, cwd: "/work/second", mains: 2 },
		]);
		expect(there.links.length).toBe(1);
	});

	// P1: omp evaluates the module again for each ACP session.
	test("share the bridge though the module is evaluated twice", async () => {
		for (const copy of ["../index.ts?copy=1", "../index.ts?copy=2"]) {
			const module = (await import(copy)) as { default(pi: unknown): Promise<void> };
			await module.default(api);
		}
		expect(api.handlers.get("session_start")?.length).toBe(2);
		await api.emit("session_start", ctx);
		const link = await there.link();
		expect([there.links.length, link.all("hello").length, link.all("session_start").length]).toEqual([1, 1, 1]);
		expect(api.providers.has("a2mcp")).toBe(true); // O1: offered while it loads
	});

	test("of subagents are told as such, and nobody waits for it", async () => {
		const link = await begin();
		const helper = new FakeContext(host.sub("helper"));
		there.answers.session_start = () => silence;
		await api.emit("session_start", helper);
		await link.until(m => m.params?.sessionId === "helper");
		expect(link.all("session_start")[1]).toMatchObject({ isMain: false, mains: 1 });
		await api.emit("session_shutdown", helper);
		expect(link.all("session_shutdown")).toEqual([{ sessionId: "helper", isMain: false, mains: 1 }]);
	});

	test("begin though the sidecar answers with an error", async () => {
		there.answers.session_start = () => {
			throw new RpcError(-32603, "no port");
		};
		await begin();
		expect(host.log.join()).toContain("no port");
	});

	// P3: the registry still lists a main while it shuts down.
	test("that end do not count any more", async () => {
		const link = await begin();
		await api.emit("session_shutdown", ctx);
		expect(link.all("session_shutdown")).toEqual([{ sessionId: "Main", isMain: true, mains: 0 }]);
		expect(await link.ask<{ mains: number }>("host_state")).toMatchObject({ mains: 0 });
		expect(link.all("mains_changed").at(-1)).toEqual({ mains: 0 });
		host.registry.remove(main);
		expect(await link.ask<{ mains: number }>("host_state")).toMatchObject({ mains: 0 });
	});

	test("end though the sidecar answers with an error", async () => {
		const link = await begin();
		there.answers.session_shutdown = () => {
			throw new Error("busy");
		};
		await api.emit("session_shutdown", ctx);
		expect(host.log.join()).toContain("busy");
		expect(link.all("session_shutdown").length).toBe(1);
	});

	// P2: Main changes only when it ends, and the operator is told.
	test("take Main's place with a notice", async () => {
		const link = await begin();
		const second = new FakeContext(host.main("second", 2));
		second.session.tools = [tool("where", () => said("second"))];
		await api.emit("session_start", second);
		host.registry.emit("registered");
		expect(second.notices).toEqual([]);
		await api.emit("session_shutdown", ctx);
		expect(second.notices).toEqual(["info: a2mcp: the session that tools ran in has ended; they run in /work/second now"]);
		host.registry.remove(main);
		expect(second.notices.length).toBe(1);
		expect(await link.ask<unknown>("tools/call", { callId: "c", name: "where" })).toMatchObject({ content: [{ text: "second" }] });
	});
});

describe("the other side", () => {
	test("lists and calls tools", async () => {
		main.tools = [tool("echo", (_id, args) => said(JSON.stringify(args)))];
		const link = await begin();
		expect(await link.ask<unknown>("tools/list")).toMatchObject({ tools: [{ name: "echo" }], source: "main" });
		expect(await link.ask<unknown>("tools/call", { callId: "c", name: "echo", arguments: { a: 1 } })).toEqual({
			outcome: "done",
			content: [{ type: "text", text: '{"a":1}' }],
			isError: false,
		});
		expect(await link.ask("tools/call").catch(error => error.code)).toBe(-32602);
		expect(await link.ask("tools/unknown").catch(error => error)).toMatchObject({ code: -32601, message: "method not found: tools/unknown" });
	});

	// M6, M11: its approval is told, those of the host's own calls are not; a cancel ends the wait.
	test("is told what its calls wait for", async () => {
		const approval = gate<Result>();
		main.tools = [tool("bash", (_id, _args, signal) => (signal.addEventListener("abort", () => approval.fail(new Error("aborted"))), approval.promise))];
		const link = await begin();
		const answer = link.ask<unknown>("tools/call", { callId: "c", name: "bash" });
		await link.ask("host_state");
		for (const toolCallId of ["of the host", "c"]) {
			await api.emit("tool_approval_requested", ctx, { toolCallId });
			await api.emit("tool_approval_resolved", ctx, { toolCallId, approved: true });
		}
		await link.ask("host_state");
		expect(link.all("tool_state")).toEqual([
			{ callId: "c", state: "awaiting_approval" },
			{ callId: "c", state: "running" },
		]);
		link.notify("tools/cancel", { callId: "c" });
		expect(await answer).toEqual({ outcome: "cancelled" });
	});

	test("is told that the tools changed, when it asks for the state", async () => {
		const link = await begin();
		await link.ask("host_state");
		expect(link.all("tools_changed").length).toBe(0);
		main.tools = [tool("new", () => said(""))];
		await link.ask("host_state");
		await link.ask("host_state");
		expect(link.all("tools_changed").length).toBe(1);
	});

	test("speaks to the operator", async () => {
		const link = await begin();
		link.notify("notify", { level: "warning", text: "take care" });
		link.notify("status", { text: "a2mcp here" });
		await link.ask("host_state");
		expect(ctx.notices).toEqual(["warning: take care"]);
		expect(ctx.statuses.at(-1)).toBe("a2mcp here");
	});

	// M9: cards of the bridge's own tools, drawn again when their session's turn sealed them.
	test("shows cards of its own", async () => {
		const link = await begin();
		link.notify("card", { callId: "a", name: "xfer_share", phase: "start", arguments: { path: "/x" } });
		link.notify("card", { callId: "b", name: "xfer_status", phase: "start" });
		link.notify("card", { callId: "b", name: "xfer_status", phase: "end", content: [{ type: "text", text: "{}" }], isError: true });
		await link.ask("host_state");
		await api.emit("agent_end", new FakeContext(host.sub("helper")));
		await api.emit("agent_end", ctx);
		link.notify("card", { callId: "a", name: "xfer_share", phase: "end" });
		await link.ask("host_state");
		expect(main.events.map(event => `${event.type} ${event.toolCallId}`)).toEqual([
			"tool_execution_start a",
			"tool_execution_start b",
			"tool_execution_end b",
			"tool_execution_end a",
			"tool_execution_start a-again",
			"tool_execution_end a-again",
		]);
	});

	// D1, D3, D6, D7: the switch over the channel.
	test("switches inference", async () => {
		const link = await begin();
		expect(await link.ask<unknown>("llm/set", { deny: true, atStart: false })).toMatchObject({ armed: true, modelPushed: "mock/small" });
		host.ai.streamSimple(main.model as never);
		await settle();
		expect((await link.got("llm_denied")).params).toEqual({ denied: 1 });
		expect(await link.ask<unknown>("host_state")).toMatchObject({ llm: { wanted: true, armed: true, denied: 1 } });
		main.model = host.models.rows[0];
		await api.emit("before_agent_start", ctx);
		expect(main.model?.api).toBe("a2mcp-deny");
		main.model = host.models.rows[0];
		await api.emit("session_switch", ctx);
		expect(main.model?.api).toBe("a2mcp-deny");
		expect(await link.ask<unknown>("llm/set", { deny: false })).toMatchObject({ armed: false, missing: [] });
		host.registry.refs = [];
		expect(await link.ask("llm/set", { deny: true }).catch(error => error)).toMatchObject({ code: -32603, message: "there is no live main session" });
	});
});

describe("a sidecar that dies", () => {
	// P6: its callers went with it; another gets the memory and the sessions, and the bridge serves again.
	test("has a successor that is told all", async () => {
		let aborted = false;
		const state = gate();
		main.tools = [
			tool("bash", (_id, _args, signal) => {
				state.open();
				return new Promise<Result>(resolve =>
					signal.addEventListener("abort", () => {
						aborted = true;
						resolve(said(""));
					}),
				);
			}),
		];
		ctx.hasUI = false;
		const link = await begin();
		link.notify("remember", { memory: { port: 33615, sessions: ["s"] } });
		void link.ask("tools/call", { callId: "c", name: "bash" });
		await state.promise;
		link.notify("status", { text: "here" });
		await link.ask("host_state");
		link.end();
		const next = await there.link(2);
		expect(aborted).toBe(true);
		expect((await next.got("hello")).params).toMatchObject({ memory: { port: 33615, sessions: ["s"] } });
		expect((await next.got("session_start")).params).toEqual({ sessionId: "Main", isMain: true, hasUI: false, cwd: "/work/Main", mains: 1 });
		await next.ask("host_state");
		expect(next.all("session_start").length).toBe(1);
		expect(ctx.statuses.at(-1)).toBeUndefined();
		expect(ctx.notices).toEqual([]);
	});

	// D8, D11: the wish holds without it, and the operator has the last word (F3).
	test("leaves inference denied, and the operator a way back", async () => {
		fs.writeFileSync(process.env.A2MCP_CONFIG as string, '{"host_llm": "deny"}');
		fs.rmSync(there.binary);
		new Bridge(there.folder).attach(api.real, host.real);
		await api.emit("session_start", ctx);
		expect(main.model?.api).toBe("a2mcp-deny");
		expect(ctx.notices).toEqual([expect.stringMatching(/^error: a2mcp is not running: .*a2mcp install/)]);
		await command("status");
		expect(ctx.notices[1]).toMatch(/^error: a2mcp is not running: .*`\/a2mcp start`.*`\/a2mcp allow`/);
		await command(" allow ");
		expect(ctx.notices[2]).toBe("info: this host uses its models again");
		expect(main.model?.api).toBe("anthropic-messages");
	});

	// F3: the operator starts it again.
	test("is started again by the operator", async () => {
		there.answers.hello = () => {
			throw new RpcError(-32001, "protocol 1 is not 2");
		};
		await begin();
		expect(ctx.notices).toEqual(["error: a2mcp is not running: protocol 1 is not 2"]); // said once
		await api.emit("session_start", new FakeContext(host.main("second", 2)));
		expect([ctx.notices.length, there.links.length]).toEqual([1, 1]);
		there.answers.hello = () => ({ protocol: 1, version: "v1.0.0", commands: [], hostLlm: "allow" });
		await command("start");
		expect(ctx.notices.at(-1)).toBe("info: a2mcp runs again");
		const link = await there.link(2);
		await link.until(message => message.params?.sessionId === "second");
		expect(link.all("session_start").map(params => params.sessionId)).toEqual(["Main", "second"]);
	});
});

// F3: what the operator types goes to the sidecar as it is.
test("the command is the sidecar's", async () => {
	const link = await begin();
	await command("tunnel stop");
	expect(link.all("command")).toEqual([{ name: "a2mcp", args: "tunnel stop", sessionId: "Main" }]);
	expect(ctx.notices).toEqual(["info: ran tunnel stop"]);
	there.answers.command = () => {
		throw new Error("no such word");
	};
	await command("x");
	expect(ctx.notices[1]).toBe("error: a2mcp: no such word");
	expect(api.commands.get("a2mcp")?.getArgumentCompletions("to").map(item => item.value)).toEqual(["token"]);
});

// O1: the slot is filled before the sidecar is asked, and what goes wrong with it is only logged.
test("an empty slot gets the placeholder, with a notice", async () => {
	main.model = undefined;
	ctx.choice = [row("a2mcp", "offline", "a2mcp-offline", "http://a2mcp.invalid/v1")];
	await begin();
	expect(api.chosen).toEqual(ctx.choice);
	expect(ctx.notices).toEqual([expect.stringContaining("a placeholder is selected")]);
	api.setModel = () => Promise.reject(new Error("no key"));
	await api.emit("session_start", ctx);
	expect(host.log.join()).toContain("no key");
});
