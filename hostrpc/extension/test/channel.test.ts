import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { Channel, gone, RpcError } from "../channel";
import { gate, settle } from "./fake";

class Other {
	sent: Record<string, unknown>[] = [];
	odd: string[] = [];
	handled: [string, unknown][] = [];
	handle: (method: string, params: unknown) => unknown = () => undefined;
	full = false;
	channel;

	constructor(limit?: number) {
		this.channel = new Channel(this.options, limit);
	}

	options = {
		write: (line: string) => {
			if (this.full) throw new Error("the sidecar does not read");
			expect(line.endsWith("\n")).toBe(true);
			this.sent.push(JSON.parse(line));
		},
		handle: (method: string, params: unknown) => {
			this.handled.push([method, params]);
			return this.handle(method, params);
		},
		odd: (what: string) => void this.odd.push(what),
	};

	feed(text: string): void {
		this.channel.feed(Buffer.from(text));
	}
}

let other: Other;
beforeEach(() => {
	other = new Other();
});
afterEach(() => {
	jest.useRealTimers();
});

describe("lines", () => {
	const text = '{"jsonrpc":"2.0","method":"a","params":{"text":"schön 😀"}}\n\n{"method":"b"}\nnoise\n{"method":"c"}\n';

	test("are the same however the bytes are split", () => {
		const bytes = Buffer.from(text);
		for (let size = 1; size <= bytes.length; size++) {
			const one = new Other();
			for (let at = 0; at < bytes.length; at += size) one.channel.feed(bytes.subarray(at, at + size));
			expect(one.handled).toEqual([
				["a", { text: "schön 😀" }],
				["b", undefined],
				["c", undefined],
			]);
			expect(one.odd.length).toBe(2); // the empty one and the noise
		}
	});

	test("that are no message are skipped", () => {
		other.feed('null\n7\n"x"\n[]\n{}\n{"id":7,"result":1}\n{"id":null}\n{"method":1}\n\xff\n{"method":"last"}\n');
		expect(other.odd.length).toBe(9);
		expect(other.handled).toEqual([["last", undefined]]);
		expect(other.sent).toEqual([]);
	});

	test("over the limit are dropped without being kept", () => {
		const exact = `{"method":"${"a".repeat(100 - 13)}"}`;
		for (const size of [1, 7, 100, 1_000]) {
			const small = new Other(100);
			const bytes = Buffer.from(`${exact}\n${exact} \n{"method":"after"}\n`);
			for (let at = 0; at < bytes.length; at += size) small.channel.feed(bytes.subarray(at, at + size));
			expect(small.odd).toEqual(["a line of 101 bytes was dropped"]);
			expect(small.handled.map(([method]) => method)).toEqual(["a".repeat(87), "after"]);
		}
	});
});

describe("answers", () => {
	test("carry the id of the other side, whatever it is", async () => {
		other.handle = () => Promise.resolve({ ok: true });
		other.feed('{"id":"s1","method":"a"}\n');
		other.handle = () => undefined;
		other.feed('{"id":"s2","method":"b"}\n{"method":"a notification"}\n');
		await settle();
		expect(other.sent).toEqual([
			{ jsonrpc: "2.0", id: "s2", result: {} },
			{ jsonrpc: "2.0", id: "s1", result: { ok: true } },
		]);
	});

	test("tell what was thrown, at once or later", async () => {
		other.handle = () => {
			throw new RpcError(-32601, "method not found: x");
		};
		other.feed('{"id":"s1","method":"x"}\n');
		expect(other.odd).toEqual([]);
		other.handle = () => Promise.reject(new TypeError("broken"));
		other.feed('{"id":"s2","method":"y"}\n{"method":"z"}\n');
		await settle();
		expect(other.sent).toEqual([
			{ jsonrpc: "2.0", id: "s1", error: { code: -32601, message: "method not found: x" } },
			{ jsonrpc: "2.0", id: "s2", error: { code: -32603, message: "broken" } },
		]);
		expect(other.odd).toEqual(["y: broken", "z: broken"]);
	});

	test("that are no JSON become errors, so that nobody waits for ever", () => {
		other.handle = () => ({ n: 1n });
		other.feed('{"id":"s1","method":"a"}\n');
		expect(other.sent).toEqual([{ jsonrpc: "2.0", id: "s1", error: { code: -32603, message: expect.stringContaining("BigInt") } }]);
	});

	test("over the limit of a line become errors", () => {
		const small = new Other(200);
		small.handle = () => ({ text: "é".repeat(90) });
		small.feed('{"id":"s1","method":"a"}\n');
		expect(small.sent).toEqual([{ jsonrpc: "2.0", id: "s1", error: { code: -32603, message: expect.stringContaining("limit") } }]);
	});
});

describe("requests", () => {
	test("have ids of this side that are never reused", async () => {
		const first = other.channel.request("a", { x: 1 }, 1000);
		const second = other.channel.request("b", {}, 1000);
		expect(other.sent).toEqual([
			{ jsonrpc: "2.0", id: "h1", method: "a", params: { x: 1 } },
			{ jsonrpc: "2.0", id: "h2", method: "b", params: {} },
		]);
		other.feed('{"id":"h2","result":"two"}\n{"id":"h2","result":"again"}\n{"id":"h9","result":"of nobody"}\n');
		other.feed('{"id":"h1","error":{"code":-32001,"message":"no"}}\n');
		expect(await second).toBe("two");
		expect(await first.catch(error => error)).toEqual(new RpcError(-32001, "no"));
		void other.channel.request("c", {}, 1000).catch(() => {});
		expect(other.sent.at(-1)?.id).toBe("h3");
		other.channel.close();
	});

	test("end at their limit, and a late answer is nobody's", async () => {
		jest.useFakeTimers();
		const slow = other.channel.request("a", {}, 5_000).catch(error => error);
		jest.advanceTimersByTime(4_999);
		await settle();
		jest.advanceTimersByTime(1);
		expect(((await slow) as Error).message).toBe("the sidecar did not answer a within 5 s");
		other.feed('{"id":"h1","result":{}}\n');
		expect(other.odd).toEqual([]);
	});

	test("fail at once when the other side takes no more", async () => {
		other.full = true;
		expect(await other.channel.request("a", {}, 60_000).catch(error => error.message)).toContain("does not read");
		other.full = false;
		other.feed('{"id":"h1","result":{}}\n');
	});

	test("end with the connection, and none begins after it", async () => {
		const pending = other.channel.request("a", {}, 60_000).catch(error => error);
		const held = gate<unknown>();
		other.handle = () => held.promise;
		other.feed('{"id":"s1","method":"a"}\n');
		other.channel.close();
		expect(await pending).toEqual(gone());
		expect(await other.channel.request("b", {}, 60_000).catch(error => error)).toEqual(gone());
		other.channel.notify("c", {});
		held.open({});
		await settle();
		expect(other.sent.length).toBe(1);
	});
});
