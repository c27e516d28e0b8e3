import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { type Change, makeAll, takeBackAll } from "../change";
import { Exclusive } from "../exclusive";
import { fresh, Progress, progressPause } from "../progress";
import { idOf, Sessions } from "../sessions";
import { FakeContext, FakeHost, settle } from "./fake";

describe("changes", () => {
	let log: string[];
	let fails: string;
	const change = (name: string): Change => ({
		name,
		make: () => act(`+${name}`),
		takeBack: () => act(`-${name}`),
	});
	function act(what: string): void {
		log.push(what);
		if (what === fails) throw new Error("broken");
	}
	const [a, b, c] = [change("a"), change("b"), change("c")];

	beforeEach(() => {
		log = [];
		fails = "";
	});

	test("are made in order", () => {
		makeAll([a, b, c]);
		expect(log).toEqual(["+a", "+b", "+c"]);
	});

	// D6: the one that failed may have done half of it.
	test("are taken back in reverse order when one cannot be made", () => {
		fails = "+c";
		expect(() => makeAll([a, b, c])).toThrow("c: broken");
		expect(log).toEqual(["+a", "+b", "+c", "-c", "-b", "-a"]);
	});

	test("are all taken back though one of them cannot be", () => {
		fails = "+c";
		const stubborn = { ...b, takeBack: () => act("+c") };
		expect(() => makeAll([a, stubborn, c])).toThrow("c: broken");
		expect(log.at(-1)).toBe("-a");
	});

	// D6, D3: a repeat that fails lets nothing through that was denied before.
	test("that stand already stay when a repeat fails", () => {
		fails = "+c";
		expect(() => makeAll([a, b, c], [a, c])).toThrow("c: broken");
		expect(log).toEqual(["+a", "+b", "+c", "-b"]);
	});

	test("are made again when one cannot be taken back", () => {
		fails = "-a";
		expect(() => takeBackAll([a, b, c])).toThrow("a: broken");
		expect(log).toEqual(["-c", "-b", "-a", "+a", "+b", "+c"]);
	});
});

describe("the exclusive queue", () => {
	const never = new AbortController().signal;

	// M12: in the order they came, without those that left.
	test("lets one in after the other", async () => {
		const queue = new Exclusive();
		const order: string[] = [];
		const leaving = new AbortController();
		const enter = (name: string, signal = never) => queue.enter(signal).then(turn => order.push(`${name} ${turn}`));
		expect(queue.busy).toBe(false);
		void enter("first");
		void enter("second");
		void enter("leaves", leaving.signal);
		void enter("third");
		await settle();
		expect(queue.busy).toBe(true);
		expect(order).toEqual(["first true"]);
		leaving.abort();
		await settle();
		queue.leave();
		await settle();
		queue.leave();
		await settle();
		expect(order).toEqual(["first true", "leaves false", "second true", "third true"]);
		queue.leave();
		expect(queue.busy).toBe(false);
	});

	test("does not take one that was cancelled before, and keeps the turn of one cancelled in it", async () => {
		const queue = new Exclusive();
		expect(await queue.enter(AbortSignal.abort())).toBe(false);
		expect(queue.busy).toBe(false);
		const running = new AbortController();
		const waiting = new AbortController();
		await queue.enter(running.signal);
		const second = queue.enter(waiting.signal);
		const third = queue.enter(never);
		queue.leave();
		expect(await second).toBe(true);
		waiting.abort(); // it has the turn: it does not leave the queue a second time
		queue.leave();
		expect(await third).toBe(true);
	});
});

describe("progress", () => {
	beforeEach(() => {
		jest.useFakeTimers();
	});
	afterEach(() => {
		jest.useRealTimers();
	});
	const text = (...blocks: string[]) => blocks.map(words => ({ type: "text", text: words }));

	test("is what is new of a text that grows", () => {
		const sent: unknown[] = [];
		const progress = new Progress(content => sent.push(content));
		progress.update(text("L1\n"));
		progress.update(text("L1\nL2\n"));
		expect(sent).toEqual([]);
		jest.advanceTimersByTime(progressPause);
		expect(sent).toEqual([text("L1\nL2\n")]);
		progress.update(text("L1\n", "L2\nL3\n"));
		jest.advanceTimersByTime(progressPause);
		expect(sent[1]).toEqual(text("L3\n"));
		progress.update(text("L1\nL2\nL3\n"));
		jest.advanceTimersByTime(progressPause);
		expect(sent.length).toBe(2); // nothing new
		progress.update(text("late"));
		progress.end();
		jest.advanceTimersByTime(progressPause);
		expect(sent.length).toBe(2);
	});

	test("is all of a text that does not continue the last one", () => {
		expect(fresh("", "ab")).toEqual({ text: "ab", said: "ab" });
		expect(fresh("ab", "abc")).toEqual({ text: "c", said: "abc" });
		expect(fresh("abc", "xyz")).toEqual({ text: "xyz", said: "xyz" });
		expect(fresh("abc", "ab")).toEqual({ text: "ab", said: "ab" });
	});

	test("takes whatever a tool reports", () => {
		const sent: unknown[] = [];
		const progress = new Progress(content => sent.push(content));
		for (const odd of [undefined, null, "text", 7, [null], [{}], [{ type: "image", data: "" }], [{ type: "text" }]]) {
			progress.update(odd as never);
			jest.advanceTimersByTime(progressPause);
		}
		expect(sent).toEqual([]);
	});
});

describe("sessions", () => {
	// P2: Main is the live one that started first.
	test("are the main ones that live, in the order they started", () => {
		const host = new FakeHost();
		const sessions = new Sessions(host.real.registry);
		expect(sessions.main()).toBeUndefined();
		const second = host.main("acp:2", 20);
		const first = host.main("acp:1", 10);
		const twin = host.main("acp:3", 20);
		host.sub("helper");
		host.registry.refs.push({ id: "acp:0", kind: "main", createdAt: 1, session: null });
		expect(sessions.mains() as unknown[]).toEqual([first, second, twin]);
		sessions.ends(first.real);
		expect(sessions.mains() as unknown[]).toEqual([second, twin]); // the registry still lists it
		host.registry.remove(first);
		expect(sessions.main() as unknown).toBe(second);
	});

	// P3: a parked Main has no session and does not count.
	test("that are parked do not count", () => {
		const host = new FakeHost();
		const sessions = new Sessions(host.real.registry);
		const main = host.main();
		const ctx = new FakeContext(main);
		expect(sessions.of(ctx.real) as unknown).toBe(main);
		for (const ref of host.registry.refs) ref.session = null;
		expect(sessions.mains()).toEqual([]);
		expect(sessions.of(ctx.real)).toBeUndefined();
	});

	test("are told from subagents by their ids, also after /new", () => {
		const host = new FakeHost();
		const sessions = new Sessions(host.real.registry);
		const main = host.main();
		const ctx = new FakeContext(main);
		expect(sessions.of(new FakeContext(host.sub("helper")).real)).toBeUndefined();
		main.id = "another";
		expect(idOf(ctx.real)).toBe("another");
		expect(sessions.of(ctx.real) as unknown).toBe(main);
	});

	test("tell of their changes, but not of mere descriptions", () => {
		const host = new FakeHost();
		let changes = 0;
		new Sessions(host.real.registry).onChange(() => changes++);
		for (const type of ["registered", "status_changed", "metadata_changed", "removed"]) host.registry.emit(type);
		expect(changes).toBe(3);
	});

	test("are none where the host has no registry", () => {
		const sessions = new Sessions(undefined);
		sessions.onChange(() => {});
		expect(sessions.mains()).toEqual([]);
		expect(sessions.of(new FakeContext(new FakeHost().main()).real)).toBeUndefined();
	});
});
