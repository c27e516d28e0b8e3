/**
 * One connection to a sidecar: JSON-RPC 2.0, one message a line, both directions (proto/HOST.md).
 */
import { text } from "./change";
import { ErrorCode } from "./protocol";

/** The longest line either side accepts, in bytes. */
export const maxLine = 256 << 20;

/** An error answer of the other side, or one for it. */
export class RpcError extends Error {
	constructor(
		readonly code: number,
		message: string,
	) {
		super(message);
	}
}

/** What happens to requests whose connection ends. */
export const gone = () => new RpcError(ErrorCode.internal, "the sidecar ended");

export interface ChannelOptions {
	/** Takes a line to the other side; throws if it cannot take any more. */
	write(line: string): void;
	/** Answers a request or takes a notification. A thrown RpcError is the answer. */
	handle(method: string, params: unknown): unknown;
	/** Says that something about a line was odd. */
	odd(what: string): void;
}

interface Waiting {
	resolve(result: unknown): void;
	reject(error: Error): void;
	timer: Timer;
}

interface Message {
	id?: string;
	method?: string;
	params?: unknown;
	result?: unknown;
	error?: { code: number; message: string };
}

export class Channel {
	#waiting = new Map<string, Waiting>();
	#lastId = 0;
	#parts: Uint8Array[] = [];
	#size = 0;
	#closed = false;

	constructor(
		private readonly opt: ChannelOptions,
		private readonly limit = maxLine,
	) {}

	/** Takes the next bytes from the other side, split anywhere. */
	feed(chunk: Uint8Array): void {
		let start = 0;
		for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
			this.#keep(chunk.subarray(start, end));
			start = end + 1;
			this.#line();
		}
		this.#keep(chunk.subarray(start));
	}

	#keep(part: Uint8Array): void {
		this.#size += part.length;
		if (this.#size <= this.limit) this.#parts.push(part);
		else this.#parts = []; // said once its end is there
	}

	#line(): void {
		const parts = this.#parts;
		const size = this.#size;
		this.#parts = [];
		this.#size = 0;
		if (size > this.limit) {
			this.opt.odd(`a line of ${size} bytes was dropped`);
			return;
		}
		let message: Message;
		try {
			message = JSON.parse(Buffer.concat(parts).toString("utf8")) as Message;
		} catch {
			this.opt.odd("a line that is no message was skipped");
			return;
		}
		if (typeof message?.method === "string") this.#incoming(message.id, message.method, message.params);
		else if (typeof message?.id === "string") this.#answered(message.id, message);
		else this.opt.odd("a line that is neither request nor answer was skipped");
	}

	#incoming(id: string | undefined, method: string, params: unknown): void {
		if (this.#closed && id !== undefined) return; // the last words of a dead sidecar are heard, not obeyed
		let outcome: unknown;
		try {
			outcome = this.opt.handle(method, params);
		} catch (error) {
			this.#fail(id, method, error);
			return;
		}
		if (outcome instanceof Promise) {
			outcome.then(
				result => this.#reply(id, result),
				error => this.#fail(id, method, error),
			);
		} else {
			this.#reply(id, outcome);
		}
	}

	#reply(id: string | undefined, result: unknown): void {
		if (id === undefined) return;
		const refused = this.#send({ id, result: result ?? {} });
		if (refused) this.#send({ id, error: { code: ErrorCode.internal, message: refused.message } });
	}

	#fail(id: string | undefined, method: string, error: unknown): void {
		if (!(error instanceof RpcError)) this.opt.odd(`${method}: ${text(error)}`);
		if (id === undefined) return;
		const code = error instanceof RpcError ? error.code : ErrorCode.internal;
		this.#send({ id, error: { code, message: text(error) } });
	}

	#answered(id: string, message: Message): void {
		const waiting = this.#waiting.get(id);
		if (!waiting) return; // it came too late
		this.#waiting.delete(id);
		clearTimeout(waiting.timer);
		if (message.error) waiting.reject(new RpcError(message.error.code, message.error.message));
		else waiting.resolve(message.result);
	}

	/** Asks the other side; rejects after `limit` milliseconds, and when the connection ends. */
	request<R>(method: string, params: unknown, limit: number): Promise<R> {
		return new Promise<R>((resolve, reject) => {
			if (this.#closed) {
				reject(gone());
				return;
			}
			const id = `h${++this.#lastId}`;
			const timer = setTimeout(() => {
				this.#waiting.delete(id);
				reject(new RpcError(ErrorCode.internal, `the sidecar did not answer ${method} within ${limit / 1000} s`));
			}, limit);
			timer.unref?.();
			this.#waiting.set(id, { resolve: resolve as Waiting["resolve"], reject, timer });
			const refused = this.#send({ id, method, params });
			if (!refused) return;
			this.#waiting.delete(id);
			clearTimeout(timer);
			reject(refused);
		});
	}

	notify(method: string, params: unknown): void {
		this.#send({ method, params });
	}

	/** Writes a message, or tells why it could not: it is no JSON, too long, or nobody takes it. */
	#send(message: Message): RpcError | undefined {
		if (this.#closed) return undefined;
		try {
			const line = `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
			if (line.length > this.limit / 3 && Buffer.byteLength(line) > this.limit) throw new Error("it is over the limit of a line");
			this.opt.write(line);
			return undefined;
		} catch (error) {
			const why = `a message was not sent: ${text(error)}`;
			this.opt.odd(why);
			return new RpcError(ErrorCode.internal, why);
		}
	}

	/** Ends all that waits. */
	close(): void {
		this.#closed = true;
		for (const waiting of this.#waiting.values()) {
			clearTimeout(waiting.timer);
			waiting.reject(gone());
		}
		this.#waiting.clear();
	}
}
