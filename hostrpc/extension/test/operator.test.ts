import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { Operator } from "../operator";
import type { Message } from "../protocol";
import { Sessions } from "../sessions";
import { FakeAPI, type FakeCommand, FakeContext, FakeHost, gate, settle } from "./fake";

let host: FakeHost;
let operator: Operator;
beforeEach(() => {
	host = new FakeHost();
	operator = new Operator(new Sessions(host.real.registry), () => host.logger);
});
afterEach(() => {
	jest.useRealTimers();
});

const hello: Message = { level: "info", text: "hello" };

describe("a notice", () => {
	// P2: to the first session while it lives, then to Main's.
	test("goes to the first session while it lives, then to Main", () => {
		const first = new FakeContext(host.main("acp:1", 1));
		const second = new FakeContext(host.main("acp:2", 2));
		const helper = new FakeContext(host.sub("helper"));
		helper.hasUI = false;
		for (const ctx of [helper, first, second]) operator.began(ctx.real);
		operator.notice(hello);
		expect([first.notices, second.notices, helper.notices]).toEqual([["info: hello"], [], []]);
		operator.ended(first.real);
		host.registry.remove(first.session);
		operator.notice({ level: "error", text: "now here" });
		expect(second.notices).toEqual(["error: now here"]);
		operator.ended(second.real);
		host.registry.remove(second.session);
		operator.notice({ level: "odd", text: "to nobody" });
		expect(host.log).toEqual([expect.stringContaining("to nobody")]);
	});

	test("goes to the first context though Main is another's", () => {
		const [main, first] = [new FakeContext(host.main("acp:1", 1)), new FakeContext(host.main("acp:2", 2))];
		operator.began(first.real);
		operator.began(main.real);
		operator.notice(hello);
		expect([first.notices, main.notices]).toEqual([["info: hello"], []]);
	});

	test("goes to Main where nobody has a screen", () => {
		const main = new FakeContext(host.main());
		main.hasUI = false;
		operator.began(main.real);
		operator.notice({ level: "warning", text: "hello" });
		operator.notice({ level: "odd", text: "hello" });
		expect(main.notices).toEqual(["warning: hello", "info: hello"]);
	});

	test("that the host does not take is logged", () => {
		const main = new FakeContext(host.main());
		const stale = () => {
			throw new Error("stale");
		};
		Object.assign(main.ui, { notify: stale, setStatus: stale });
		operator.began(main.real);
		operator.notice(hello);
		operator.status("x");
		expect(host.log.length).toBe(3);
	});

	test("still finds its session after /new", () => {
		const main = new FakeContext(host.main());
		operator.began(main.real);
		main.session.id = "another";
		operator.notice(hello);
		expect(main.notices).toEqual(["info: hello"]);
		operator.ended(main.real);
		operator.notice(hello);
		expect(main.notices.length).toBe(1);
	});
});

// F3: one short line in every session, also those that begin later.
test("the status line is in every session", () => {
	const [first, second] = [new FakeContext(host.main("a", 1)), new FakeContext(host.main("b", 2))];
	operator.began(first.real);
	operator.status("a2mcp http://127.0.0.1:33615/");
	operator.began(second.real);
	operator.status("");
	expect(first.statuses).toEqual([undefined, "a2mcp http://127.0.0.1:33615/", undefined]);
	expect(second.statuses).toEqual(["a2mcp http://127.0.0.1:33615/", undefined]);
});

describe("the command", () => {
	let api: FakeAPI;
	let asked: string[];
	let answer: Promise<Message>;
	let ctx: FakeContext;
	beforeEach(() => {
		api = new FakeAPI(host);
		asked = [];
		ctx = new FakeContext(host.main());
		operator.began(ctx.real);
		operator.register(api.real, (args, id) => {
			asked.push(`${id}: ${args}`);
			return answer;
		});
	});
	const command = () => api.commands.get("a2mcp") as FakeCommand;
	const words = (prefix: string) => command().getArgumentCompletions(prefix)?.map(item => item.value) ?? [];

	test("shows its answer where it was typed", async () => {
		answer = Promise.resolve({ level: "warning", text: "careful" });
		const other = new FakeContext(host.main("other", 2));
		await command().handler("tunnel stop", other.real);
		expect(asked).toEqual(["other: tunnel stop"]);
		expect(other.notices).toEqual(["warning: careful"]);
		expect(ctx.notices).toEqual([]);
	});

	test("that takes its time frees the prompt, and its answer is a notice", async () => {
		jest.useFakeTimers();
		const late = gate<Message>();
		answer = late.promise;
		const typed = command().handler("tunnel", ctx.real);
		jest.advanceTimersByTime(5_000);
		await typed;
		expect(ctx.notices).toEqual(["info: a2mcp is at it; the answer will be shown here"]);
		late.open({ level: "info", text: "open" });
		await settle();
		expect(ctx.notices[1]).toBe("info: open");
	});

	test("that fails late is logged", async () => {
		jest.useFakeTimers();
		const late = gate<Message>();
		answer = late.promise;
		const typed = command().handler("tunnel", ctx.real);
		jest.advanceTimersByTime(5_000);
		await typed;
		late.fail(new Error("gone"));
		await settle();
		expect(host.log).toEqual([expect.stringContaining("gone")]);
	});

	// F3: completion, with the sidecar's words while there is one.
	test("is completed", () => {
		expect(words("")).toEqual(["start", "allow"]);
		operator.offer([{ name: "a2mcp", description: "", words: ["status", "tunnel", "tunnel stop"] }]);
		expect(words("tun")).toEqual(["tunnel", "tunnel stop"]);
		expect(words("  tunnel s")).toEqual(["tunnel stop"]);
		expect(words("tunnel ")).toEqual(["tunnel stop"]);
		expect(words("tunnel")).toEqual([]); // whole: Enter runs it, though another begins the same
		expect(words("x")).toEqual([]);
		operator.offer([]);
		expect(words("a")).toEqual(["allow"]);
	});
});
