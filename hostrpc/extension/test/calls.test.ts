import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { Calls, tooLarge } from "../calls";
import { Cards } from "../cards";
import { maxLine } from "../channel";
import { Sessions } from "../sessions";
import { FakeHost, type FakeSession, type FakeTool, gate, type Result, said, settle, tool } from "./fake";

let host: FakeHost;
let main: FakeSession;
let sessions: Sessions;
let cards: Cards;
let calls: Calls;
let states: string[];
let progress: unknown[];

beforeEach(() => {
	host = new FakeHost();
	main = host.main();
	sessions = new Sessions(host.real.registry);
	cards = new Cards(host.real);
	states = [];
	progress = [];
	calls = new Calls(
		host.real,
		sessions,
		cards,
		{
			state: (id, state) => states.push(`${id} ${state}`),
			progress: (_id, content) => progress.push(content),
		},
		() => host.ownTools,
	);
});
afterEach(() => {
	jest.useRealTimers();
});

let lastId = 0;
const call = (name: unknown, args?: unknown, callId: unknown = `c${++lastId}`) => calls.call({ callId, name, arguments: args });
const failed = (words: string) => ({ outcome: "done", content: [{ type: "text", text: words }], isError: true });

describe("the list", () => {
	// M3: the registry of Main as it is, and the host's own view without one.
	test("is the live registry", () => {
		main.tools = [tool("read", () => said(""), { parameters: { type: "object", z: 1, a: 2 } }), tool("odd", () => said(""), { parameters: "broken" })];
		expect(calls.list()).toEqual({
			tools: [
				{ name: "read", description: "the read", inputSchema: { type: "object", z: 1, a: 2 } },
				{ name: "odd", description: "the odd", inputSchema: { type: "object" } },
			],
			source: "main",
		});
		expect(host.log.join()).toContain("no schema");
		expect(calls.names()).toBe("read\nodd");
		main.tools.pop();
		expect(calls.names()).toBe("read");
	});

	test("is the extension's without a main session", () => {
		host.registry.refs = [];
		host.ownTools = [tool("bash", () => said(""))];
		expect(calls.list()).toEqual({ tools: [{ name: "bash", description: "the bash", inputSchema: { type: "object" } }], source: "extension" });
		expect(calls.names()).toBe("");
	});
});

describe("a call", () => {
	test("gives the tool what it takes, and its result back", async () => {
		const given: unknown[] = [];
		main.tools = [
			tool("echo", (id, args, signal) => {
				given.push(id, args, signal.aborted);
				return { content: [{ type: "text", text: "hi" }], details: { secret: 1 } };
			}),
		];
		expect(await call("echo", { a: 1 }, "id-1")).toEqual({ outcome: "done", content: [{ type: "text", text: "hi" }], isError: false });
		expect(given).toEqual(["id-1", { a: 1 }, false]);
		await call("echo");
		expect(given[4]).toEqual({}); // arguments that were left out
		expect(calls.has("id-1")).toBe(false);
	});

	// M5: the exact name, though the host would resolve aliases.
	test("takes exact names only", async () => {
		main.tools = [tool("bash", () => said("ran"))];
		for (const name of ["xd://bash", "Bash", "bash ", "", "__proto__", "mcp__bash"]) expect(await call(name)).toEqual({ outcome: "not_exposed" });
		expect((await call("bash")).outcome).toBe("done");
		main.tools = []; // unregistered between list and call
		expect(await call("bash")).toEqual({ outcome: "not_exposed" });
	});

	// M10: a tool that is there, and a session that is not.
	test("without a main session tells what is missing", async () => {
		host.registry.refs = [];
		host.ownTools = [tool("bash", () => said("ran"))];
		expect(await call("bash")).toEqual({ outcome: "no_main" });
		expect(await call("nothing")).toEqual({ outcome: "not_exposed" });
	});

	test("of the wrong shape is an error", () => {
		expect(calls.call({ name: "bash" })).rejects.toMatchObject({ code: -32602 });
		expect(calls.call({ callId: "c", name: 7 })).rejects.toMatchObject({ code: -32602 });
	});

	// M7: what the validation makes of the arguments, or its readable refusal.
	test("passes the host's validation", async () => {
		const got: unknown[] = [];
		const run = (_id: string, args: unknown) => {
			got.push(args);
			return said("ran");
		};
		const check = (args: unknown) => {
			if (typeof (args as { n?: unknown }).n !== "string") throw new Error("Validation failed:\n  - n: must be text");
			return { n: Number((args as { n: string }).n) };
		};
		main.tools = [tool("strict", run, { check }), tool("lenient", run, { check, lenientArgValidation: true })];
		expect(await call("strict", { n: "5" })).toMatchObject({ isError: false });
		expect(await call("strict", {})).toEqual({ outcome: "invalid", content: [{ type: "text", text: "Validation failed:\n  - n: must be text" }] });
		expect(await call("lenient", { raw: true })).toMatchObject({ isError: false });
		expect(got).toEqual([{ n: 5 }, { raw: true }]);
	});

	// M4: both ways a tool fails.
	test("fails by a throw or by a returned error", async () => {
		main.tools = [
			tool("throws", () => {
				throw new Error("Tool call denied by user: bash");
			}),
			tool("rejects", () => Promise.reject("just text")),
			tool("returns", () => ({ content: [{ type: "text", text: "exit 1" }], isError: true })),
		];
		expect(await call("throws")).toEqual(failed("Tool call denied by user: bash"));
		expect(await call("rejects")).toEqual(failed("just text"));
		expect(await call("returns")).toEqual(failed("exit 1"));
	});

	test("takes an odd result for an empty one", async () => {
		for (const result of [undefined, null, {}, { content: "text" }] as Result[]) {
			main.tools = [tool("odd", () => result)];
			expect(await call("odd")).toEqual({ outcome: "done", content: [], isError: false });
		}
	});

	test("with a result over the limit of a line says so", async () => {
		const content = [{ type: "text", text: { length: maxLine } }]; // as long as that, without the bytes
		main.tools = [tool("big", () => ({ content }))];
		expect(await call("big")).toEqual(failed("result too large"));
		for (const [text, large] of [["x".repeat(900), false], ["x".repeat(1_001), true], ["é".repeat(500), true], ["\u0001".repeat(170), true], ["\u0001".repeat(120), false]] as const) {
			expect(tooLarge([{ type: "text", text }], 1_000)).toBe(large);
			expect(tooLarge([null, { type: "image", data: text }], 1_000)).toBe(large);
		}
	});

	// M14: the host goes on with it and wakes its model with the result.
	test("that goes to the background is told from one that is done", async () => {
		const state = (value: string): FakeTool => tool(value, () => ({ ...said("job 1"), details: { async: { state: value } } }));
		main.tools = [state("running"), state("completed")];
		expect(await call("running")).toMatchObject({ outcome: "done", background: true });
		expect(await call("completed")).not.toHaveProperty("background");
	});
});

describe("the context of a tool", () => {
	// M6: the approval is the host's: settings always, never a word that would approve.
	test("has the settings and approves nothing", async () => {
		let context: Record<string, unknown> | undefined;
		main.tools = [
			tool("look", (_id, _args, _signal, _update, given) => {
				context = given;
				return said("");
			}),
		];
		await call("look");
		expect(context?.settings as unknown).toBe(main.settings);
		expect(context).not.toHaveProperty("autoApprove");
		expect(Object.keys(context ?? {}).sort()).toEqual(
			["ui", "hasUI", "settings", "sessionManager", "modelRegistry", "model", "isIdle", "hasQueuedMessages", "abort", "toolNames"].sort(),
		);
		expect(context?.toolNames).toEqual(["look"]);
		expect((context?.isIdle as () => boolean)()).toBe(true);
		expect((context?.hasQueuedMessages as () => boolean)()).toBe(false);
		main.isStreaming = true;
		expect((context?.isIdle as () => boolean)()).toBe(false);
	});

	test("can abort its own call alone", async () => {
		main.tools = [
			tool("suicide", (_id, _args, signal, _update, context) => {
				(context?.abort as () => void)();
				return said(String(signal.aborted));
			}),
		];
		expect(await call("suicide")).toEqual({ outcome: "cancelled" });
	});

	test("is none without a runner", async () => {
		let context: unknown = "unset";
		main.extensionRunner = undefined;
		main.tools = [
			tool("look", (_id, _args, _signal, _update, given) => {
				context = given;
				return said("");
			}),
		];
		await call("look");
		expect(context).toBeUndefined();
	});
});

describe("a cancel", () => {
	// M11: a running tool that heeds its signal.
	test("ends a running tool", async () => {
		main.tools = [tool("bash", (_id, _args, signal) => new Promise((_r, reject) => signal.addEventListener("abort", () => reject(new Error("partial")))))];
		const answer = call("bash", {}, "c-run");
		expect(calls.has("c-run")).toBe(true);
		calls.cancel("c-other");
		calls.cancel(7);
		calls.cancel("c-run");
		expect(await answer).toEqual({ outcome: "cancelled" });
		expect(main.events.at(-1)).toMatchObject({ type: "tool_execution_end", isError: true });
		calls.cancel("c-run");
	});

	// M11: within a second, an approval dialog or not; what comes later is only logged.
	test("is answered though an approval is pending", async () => {
		jest.useFakeTimers();
		const approval = gate<Result>();
		let update!: (partial: Result) => void;
		main.tools = [
			tool("bash", (_id, _args, _signal, report) => {
				update = report;
				return approval.promise;
			}),
		];
		const answer = call("bash", {}, "c-ask");
		update(said("before"));
		calls.cancel("c-ask");
		jest.advanceTimersByTime(499);
		update(said("before the answer"));
		progress = [];
		jest.advanceTimersByTime(1);
		expect(await answer).toEqual({ outcome: "cancelled" });
		const events = main.events.length;
		update(said("after"));
		jest.advanceTimersByTime(1_000);
		expect(main.events.length).toBe(events);
		expect(progress).toEqual([]);
		approval.open(said("late"));
		await settle();
		expect(host.log.filter(line => line.includes("a cancelled call ended")).length).toBe(1);
		expect(main.events.at(-1)).toMatchObject({ type: "tool_execution_end", toolCallId: "c-ask" });
	});

	test("that a late failure follows harms nobody", async () => {
		jest.useFakeTimers();
		const approval = gate<Result>();
		main.tools = [tool("bash", () => approval.promise)];
		const answer = call("bash", {}, "c-late");
		calls.cancel("c-late");
		jest.advanceTimersByTime(999);
		await answer;
		approval.fail(new Error("denied at last")); // an unhandled rejection would end the host, and this test
		await settle();
		expect(host.log.join()).toContain("a cancelled call ended");
	});

	// P6: the callers went with their sidecar.
	test("comes to all when the sidecar is gone", async () => {
		const aborted: string[] = [];
		const wait = (id: string, _args: unknown, signal: AbortSignal) =>
			new Promise<Result>(resolve =>
				signal.addEventListener("abort", () => {
					aborted.push(id);
					resolve(said(""));
				}),
			);
		main.tools = [tool("a", wait), tool("b", wait)];
		const answers = [call("a", {}, "1"), call("b", {}, "2")];
		calls.abandon();
		expect(await Promise.all(answers)).toEqual([{ outcome: "cancelled" }, { outcome: "cancelled" }]);
		expect(aborted).toEqual(["1", "2"]);
	});
});

describe("exclusive tools", () => {
	let gates: ReturnType<typeof gate<Result>>[];
	let began: string[];
	const wait = (id: string) => {
		began.push(id);
		const one = gate<Result>();
		gates.push(one);
		return one.promise;
	};
	beforeEach(() => {
		gates = [];
		began = [];
	});

	// M12: first come, first served; others are not held up.
	test("run one at a time in the order they came", async () => {
		main.tools = [tool("edit", wait, { concurrency: "exclusive" }), tool("write", wait, { concurrency: "exclusive" }), tool("read", () => said("r"), { concurrency: "shared" })];
		const answers = [call("edit", {}, "1"), call("write", {}, "2"), call("edit", {}, "3")];
		expect((await call("read")).outcome).toBe("done");
		await settle();
		expect(began).toEqual(["1"]);
		expect(states).toEqual(["2 queued", "3 queued"]);
		expect(main.events.filter(e => e.type === "tool_execution_start" && e.toolName !== "read").length).toBe(1); // the card comes with the turn
		for (let i = 0; i < 3; i++) {
			gates[i]?.open(said(""));
			await settle();
		}
		expect(began).toEqual(["1", "2", "3"]);
		expect(states.slice(2)).toEqual(["2 running", "3 running"]);
		expect((await Promise.all(answers)).every(answer => answer.outcome === "done")).toBe(true);
	});

	// M12, M11: one that waits is cancelled, and never runs.
	test("that wait can be cancelled", async () => {
		main.tools = [tool("edit", wait, { concurrency: "exclusive" })];
		const first = call("edit", {}, "1");
		const second = call("edit", {}, "2");
		await settle();
		calls.cancel("2");
		expect(await second).toEqual({ outcome: "cancelled" });
		gates[0]?.fail(new Error("broken"));
		expect(await first).toEqual(failed("broken"));
		void call("edit", {}, "3");
		await settle();
		expect(began).toEqual(["1", "3"]);
	});

	// M12: one whose approval is pending keeps its turn though its caller has his answer.
	test("keep their turn until they have ended", async () => {
		jest.useFakeTimers();
		main.tools = [tool("edit", wait, { concurrency: "exclusive" })];
		const first = call("edit", {}, "1");
		await settle();
		void call("edit", {}, "2");
		calls.cancel("1");
		jest.advanceTimersByTime(999);
		expect(await first).toEqual({ outcome: "cancelled" });
		expect(began).toEqual(["1"]);
		gates[0]?.open(said(""));
		await settle();
		expect(began).toEqual(["1", "2"]);
	});

	// M12: it may depend on the arguments; a judge that throws means yes.
	test("are judged by their arguments", async () => {
		const concurrency = (args: { mode?: string }) => {
			if (!args.mode) throw new Error("no mode");
			return args.mode;
		};
		main.tools = [tool("bash", wait, { concurrency })];
		void call("bash", { mode: "exclusive" }, "1");
		void call("bash", { mode: "shared" }, "2");
		void call("bash", {}, "3");
		await settle();
		expect(began.sort()).toEqual(["1", "2"]);
		expect(states).toEqual(["3 queued"]);
	});
});
