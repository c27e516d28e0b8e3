import { afterEach, beforeEach, expect, jest, setDefaultTimeout, setSystemTime, test } from "bun:test";
import * as fs from "node:fs";
import * as path from "node:path";
import { type Channel, RpcError } from "../channel";
import { binaryFor, Sidecar } from "../sidecar";
import { FakeHost, gate } from "./fake";
import { FakeSidecar, silence } from "./fakesidecar";

setDefaultTimeout(20_000); // each starts processes, and a machine may be busy

/** What one test sees; a process of the test before may end during the next. */
class World {
	there = new FakeSidecar();
	host = new FakeHost();
	ups: Channel[] = [];
	givenUp: string[] = [];
	deaths = 0;
	#died: (() => void)[] = [];
	sidecar = this.make(this.there.binary);

	make(binary: string): Sidecar {
		return new Sidecar({
			binary,
			logger: () => this.host.logger,
			hello: () => ({ protocol: 1, memory: null }),
			handle: method => ({ method }),
			up: channel => this.ups.push(channel),
			down: () => {
				this.deaths++;
				for (const wake of this.#died.splice(0)) wake();
			},
			givenUp: reason => this.givenUp.push(reason),
		});
	}

	/** Until the n-th process is dead. */
	async dead(n: number): Promise<void> {
		while (this.deaths < n) await new Promise<void>(wake => this.#died.push(wake));
	}
}

let world: World;
let there: FakeSidecar;
let host: FakeHost;
let sidecar: Sidecar;
let givenUp: string[];
const dead = (n: number) => world.dead(n);

beforeEach(() => {
	world = new World();
	({ there, host, sidecar, givenUp } = world);
});

afterEach(() => {
	jest.useRealTimers();
	setSystemTime();
	sidecar.stopped = "the test is over";
	there.stop();
});

const pauses = () => host.log.flatMap(line => /"pause":(\d+)/.exec(line)?.[1] ?? []).map(Number);

test("the binary is beside the extension, or where a developer says", () => {
	const before = process.env.A2MCP_BINARY;
	try {
		delete process.env.A2MCP_BINARY;
		expect(path.dirname(binaryFor("/ext"))).toBe("/ext");
		process.env.A2MCP_BINARY = "a2mcp"; // never looked for
		expect(path.dirname(binaryFor("/ext"))).toBe("/ext");
		process.env.A2MCP_BINARY = there.binary;
		expect(binaryFor("/ext")).toBe(there.binary);
	} finally {
		if (before === undefined) delete process.env.A2MCP_BINARY;
		else process.env.A2MCP_BINARY = before;
	}
});

test("it is started once, greeted, and talks both ways", async () => {
	sidecar.ensure();
	sidecar.ensure();
	await Promise.all([sidecar.settled(10_000), sidecar.settled(10_000)]);
	sidecar.ensure();
	expect(there.links.length).toBe(1);
	const link = await there.link();
	expect(link.received).toEqual([{ jsonrpc: "2.0", id: "h1", method: "hello", params: { protocol: 1, memory: null } } as never]);
	expect(world.ups).toEqual([sidecar.channel as Channel]);
	expect(await link.ask<unknown>("x")).toEqual({ method: "x" });
	expect(await sidecar.channel?.request<unknown>("command", { args: "status" }, 5_000)).toEqual({ level: "info", text: "ran status" });
	link.end();
	await dead(1);
	// Its stderr goes to the host's log, never to the terminal.
	expect(host.log).toContain("info [a2mcp] relaying: sidecar");
});

// P6: started again with a pause that doubles, and is short again once one has lived for a minute.
test("one that served is always started again", async () => {
	sidecar.ensure();
	for (let n = 1; n <= 3; n++) {
		await sidecar.settled(10_000);
		const channel = sidecar.channel;
		there.answers.command = () => silence;
		const pending = channel?.request("command", {}, 60_000).catch(error => error.message);
		const link = await there.link(n);
		await link.got("command");
		if (n === 3) setSystemTime(Date.now() + 61_000);
		link.end();
		expect(await pending).toBe("the sidecar ended");
		await dead(n);
		expect(sidecar.channel).toBeUndefined();
	}
	setSystemTime();
	await sidecar.settled(10_000);
	expect(pauses()).toEqual([200, 400, 200]);
	expect(there.links.length).toBe(4);
	expect(givenUp).toEqual([]);
});

// P6: five deaths before hello end the tries, said once; the operator can begin anew.
test("one that never answers is given up after five deaths", async () => {
	jest.useFakeTimers();
	const starts = path.join(there.folder, "starts");
	const working = fs.readFileSync(there.binary, "utf8");
	there.script(`#!/bin/sh\necho x >>${starts}\necho 'no luck today' >&2\nexit 3\n`);
	sidecar.ensure();
	for (let n = 1; n < 5; n++) {
		await dead(n);
		sidecar.ensure(); // the pause stands
		jest.advanceTimersByTime(100 * 2 ** n);
	}
	await dead(5);
	jest.advanceTimersByTime(60_000);
	sidecar.ensure();
	expect(fs.readFileSync(starts, "utf8")).toBe("x\n".repeat(5));
	expect(pauses()).toEqual([200, 400, 800, 1600]);
	expect(givenUp).toEqual(["a2mcp.js ended 5 times before it answered (exit code 3: no luck today)"]);
	expect(sidecar.stopped).toBe(givenUp[0] as string);
	await sidecar.settled(10_000); // at once

	jest.useRealTimers();
	there.script(working);
	sidecar.retry();
	await sidecar.settled(10_000);
	expect(sidecar.channel).toBeDefined();
});

// P6: five in a row; one that answered begins a new row.
test("deaths are counted anew once one has answered", async () => {
	jest.useFakeTimers();
	const working = fs.readFileSync(there.binary, "utf8");
	const broken = "#!/bin/sh\nexit 3\n";
	there.script(broken);
	sidecar.ensure();
	for (let n = 1; n <= 4; n++) {
		await dead(n);
		if (n === 4) there.script(working);
		jest.advanceTimersByTime(5_000);
	}
	await sidecar.settled(10_000);
	expect(sidecar.channel).toBeDefined();
	there.script(broken);
	(await there.link()).end();
	for (let n = 5; n <= 9; n++) {
		await dead(n);
		expect(givenUp).toEqual([]);
		jest.advanceTimersByTime(5_000);
	}
	await dead(10);
	expect(givenUp.length).toBe(1);
});

// P6: 5 s without an answer is a death.
test("one that is silent is ended", async () => {
	jest.useFakeTimers();
	there.answers.hello = () => silence;
	sidecar.ensure();
	await (await there.link()).got("hello");
	jest.advanceTimersByTime(5_000);
	await dead(1);
	expect(pauses()).toEqual([200]);
});

test("one that cannot be started says so once", async () => {
	sidecar = world.make("/nowhere/a2mcp");
	sidecar.ensure();
	sidecar.ensure();
	await sidecar.settled(10_000);
	expect(givenUp).toEqual([expect.stringContaining("run `a2mcp install`")]);
});

// P6: another protocol is said once, and it is not started again, unless the operator says so.
test("one of another protocol is given up", async () => {
	there.answers.hello = () => {
		throw new RpcError(-32001, "protocol 1 is not 2; run `a2mcp install`");
	};
	sidecar.ensure();
	await sidecar.settled(10_000);
	expect(givenUp).toEqual(["protocol 1 is not 2; run `a2mcp install`"]);
	await dead(1); // it makes room
	sidecar.ensure();
	expect([there.links.length, pauses().length, givenUp.length]).toEqual([1, 0, 1]);
	there.answers.hello = () => ({ protocol: 1, version: "v1.0.0", commands: [], hostLlm: "allow" });
	sidecar.retry();
	await sidecar.settled(10_000);
	expect(sidecar.channel).toBeDefined();
});

test("it is waited for no longer than asked", async () => {
	jest.useFakeTimers();
	const held = gate<unknown>();
	there.answers.hello = () => held.promise;
	sidecar.ensure();
	const settled = sidecar.settled(3_000);
	jest.advanceTimersByTime(3_000);
	await settled;
	expect(sidecar.channel).toBeUndefined();
});

// P6: a broken pipe is no promise that nobody waits for: that would end the host.
test.skipIf(process.platform === "win32")("one that dies while much waits for it harms nobody", async () => {
	sidecar.ensure();
	await sidecar.settled(10_000);
	const pid = sidecar.pid as number;
	process.kill(pid, "SIGSTOP");
	const text = "x".repeat(1 << 20);
	const pending = Array.from({ length: 8 }, () => sidecar.channel?.request("command", { text }, 60_000).catch(error => error.message));
	sidecar.channel?.notify("mains_changed", { text });
	process.kill(pid, "SIGKILL");
	expect(new Set(await Promise.all(pending))).toEqual(new Set(["the sidecar ended"]));
	await dead(1);
	await sidecar.settled(10_000);
	expect(there.links.length).toBe(2);
});
