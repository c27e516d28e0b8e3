import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { Calls } from "../calls";
import { Cards } from "../cards";
import { Sessions } from "../sessions";
import { FakeHost, type FakeSession, gate, type Result, said, settle, tool } from "./fake";

let host: FakeHost;
let main: FakeSession;
let cards: Cards;
let calls: Calls;
let progress: unknown[];

beforeEach(() => {
	host = new FakeHost();
	main = host.main();
	cards = new Cards(host.real);
	progress = [];
	const reports = { state: () => {}, progress: (_id: string, content: unknown[]) => void progress.push(content) };
	calls = new Calls(host.real, new Sessions(host.real.registry), cards, reports, () => []);
});
afterEach(() => {
	jest.useRealTimers();
});

const call = (name: string, args?: unknown, callId = "c") => calls.call({ callId, name, arguments: args });

describe("cards", () => {
	const types = () => main.events.map(event => `${event.type} ${event.toolCallId}`);

	// M9: the events of a local call.
	test("are those of a local call", async () => {
		jest.useFakeTimers();
		main.tools = [
			tool("bash", (_id, _args, _signal, update) => {
				update(said("half"));
				update(undefined);
				return said("whole");
			}),
		];
		await call("bash", { command: "x" }, "c");
		expect(main.events).toEqual([
			{ type: "tool_execution_start", toolCallId: "c", toolName: "bash", args: { command: "x" } },
			{ type: "tool_execution_update", toolCallId: "c", toolName: "bash", args: { command: "x" }, partialResult: said("half") },
			{ type: "tool_execution_update", toolCallId: "c", toolName: "bash", args: { command: "x" }, partialResult: undefined },
			{ type: "tool_execution_end", toolCallId: "c", toolName: "bash", result: said("whole"), isError: false },
		]);
	});

	// M9: drawn once more, under a new id, when a turn of its own session sealed it.
	test("sealed by the end of a turn are drawn again", () => {
		const helper = host.sub("helper");
		cards.start(main.real, "a", "read", {});
		cards.turnEnded(helper.real);
		cards.turnEnded(undefined);
		cards.end("a", { content: [] });
		expect(types()).toEqual(["tool_execution_start a", "tool_execution_end a"]);
		main.events = [];
		cards.start(main.real, "b", "read", {});
		cards.turnEnded(main.real);
		cards.end("b", { content: [], isError: true });
		expect(types()).toEqual(["tool_execution_start b", "tool_execution_end b", "tool_execution_start b-again", "tool_execution_end b-again"]);
		expect(main.events.at(-1)).toMatchObject({ isError: true });
		main.events = [];
		cards.start(main.real, "c", "read", {});
		cards.end("c", { content: [] });
		cards.end("c", { content: [] });
		cards.update("c", { content: [] });
		expect(types()).toEqual(["tool_execution_start c", "tool_execution_end c"]);
	});

	// M9: a host that refuses them loses the card, and the tool runs once.
	test("that the host refuses change nothing", async () => {
		let runs = 0;
		main.tools = [
			tool("bash", (_id, _args, _signal, update) => {
				runs++;
				update(said("half"));
				return said("whole");
			}),
		];
		for (const emit of [undefined, () => { throw new Error("no such event"); }]) {
			main.agent.emitExternalEvent = emit;
			expect(await call("bash")).toEqual({ outcome: "done", content: [{ type: "text", text: "whole" }], isError: false });
		}
		expect(runs).toBe(2);
		expect(Cards.able(undefined)).toBe(false);
		expect(Cards.able(main.real)).toBe(true);
		delete main.agent.emitExternalEvent;
		expect(Cards.able(main.real)).toBe(false);
	});
});

// The tool's report becomes what is new since the last one.
test("progress goes out as what is new", async () => {
	jest.useFakeTimers();
	const end = gate<Result>();
	main.tools = [
		tool("bash", (_id, _args, _signal, update) => {
			update(said("L1\n"));
			setTimeout(() => update(said("L1\nL2\n")), 150);
			return end.promise;
		}),
	];
	const answer = call("bash");
	await settle();
	jest.advanceTimersByTime(1_000);
	end.open(said("L1\nL2\n"));
	await answer;
	expect(progress).toEqual([[{ type: "text", text: "L1\n" }], [{ type: "text", text: "L2\n" }]]);
});
