import { afterEach, expect, test } from "bun:test";
import { type Change, makeAll } from "./change";
import { Tripwire } from "./tripwire";

const original = globalThis.fetch;
afterEach(() => {
	globalThis.fetch = original;
});

const ask = async () => (await fetch("http://model.example/v1/messages", { method: "POST" })).status;
const answering = (async () => new Response("real")) as unknown as typeof fetch;

function armed() {
	globalThis.fetch = answering;
	const wire = new Tripwire(() => {});
	wire.add("http://model.example/v1", "");
	const change = wire.changes[0] as Change;
	change.make();
	return change;
}

test("somebody wraps ours and unwraps it after restore", async () => {
	const change = armed();
	const ours = globalThis.fetch;
	globalThis.fetch = ((...args: Parameters<typeof fetch>) => ours(...args)) as typeof fetch;
	change.takeBack();
	expect(await ask()).toBe(200);
	globalThis.fetch = ours;
	for (let i = 0; i < 2; i++) {
		change.make();
		expect(await ask()).toBe(403);
		change.takeBack();
		expect(await ask()).toBe(200);
	}
	expect(globalThis.fetch).toBe(answering);
});

test("somebody puts the original over ours", async () => {
	const change = armed();
	globalThis.fetch = ((...args: Parameters<typeof fetch>) => answering(...args)) as typeof fetch;
	change.takeBack();
	change.make();
	expect(await ask()).toBe(403);
	change.takeBack();
	expect(await ask()).toBe(200);
});

test("what was made already stays when one more cannot be made", () => {
	const on = new Set<string>();
	const change = (name: string): Change => ({ name, make: () => void on.add(name), takeBack: () => void on.delete(name) });
	const first = change("first");
	makeAll([first]);
	const bad: Change = { name: "bad", make: () => { throw new Error("no"); }, takeBack: () => {} };
	expect(() => makeAll([first, change("second"), bad], [first])).toThrow();
	expect([...on]).toEqual(["first"]);
});
