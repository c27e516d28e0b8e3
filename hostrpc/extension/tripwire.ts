/**
 * What stands at the process's own way out: requests to a model's host are answered here (D3). It is
 * told by host and port, so that nothing else on this machine is met. An answer, not an exception:
 * the host takes an exception for a network error and tries again.
 */
import http2 from "node:http2";
import type { Change } from "./change";
import { sentinel } from "./denial";
import { deadEnd } from "./redirects";

const deadSocket = deadEnd.replace("http:", "ws:");

export class Tripwire {
	/** host:port of every model, as URL.host writes it. */
	readonly keys = new Set<string>();
	readonly changes: readonly Change[];

	constructor(private readonly counted: () => void) {
		this.changes = [new Fetch(this), new Sockets(this), new Http2(this)];
	}

	/** Whether a request to this address is refused. */
	meets(address: unknown): boolean {
		const url = urlOf(address);
		return url !== undefined && this.keys.has(url.host);
	}

	count(): void {
		this.counted();
	}

	add(address: string, except: string): void {
		const url = urlOf(address);
		if (url && url.host !== "" && url.host !== except) this.keys.add(url.host);
	}
}

function urlOf(address: unknown): URL | undefined {
	try {
		if (address instanceof URL) return address;
		return new URL(typeof address === "string" ? address : (address as Request).url);
	} catch {
		return undefined;
	}
}

/** What can be put in place of a function of the process and taken away again. */
abstract class Replacement<T> implements Change {
	abstract readonly name: string;
	#original: T | undefined;
	#mine: T | undefined;
	#live = false;

	protected abstract get current(): T;
	protected abstract set current(value: T);
	protected abstract wrap(original: T, live: () => boolean): T;

	/** Also made again, over whatever somebody has put there: nobody can tell whether that leads to an earlier one. */
	make(): void {
		this.#live = true;
		if (this.#mine !== undefined && this.current === this.#mine) return;
		this.#original = this.current;
		this.#mine = this.wrap(this.#original, () => this.#live);
		this.current = this.#mine;
	}

	/** One that somebody has put something over stays there, and lets everything through. */
	takeBack(): void {
		this.#live = false;
		if (this.#mine === undefined || this.#original === undefined) return;
		if (this.current !== this.#mine) return;
		this.current = this.#original;
		this.#mine = undefined;
	}
}

class Fetch extends Replacement<typeof fetch> {
	readonly name = "fetch";

	constructor(private readonly wire: Tripwire) {
		super();
	}

	protected get current() {
		return globalThis.fetch;
	}

	protected set current(value: typeof fetch) {
		globalThis.fetch = value;
	}

	protected wrap(original: typeof fetch, live: () => boolean): typeof fetch {
		const { wire } = this;
		const wrapped = function (this: unknown, ...args: Parameters<typeof fetch>) {
			const [input, init] = args;
			if (!live() || !wire.meets(input)) return Reflect.apply(original, this, args) as ReturnType<typeof fetch>;
			const method = init?.method ?? (typeof input === "object" && "method" in input ? input.method : "GET");
			if (method.toUpperCase() === "POST") wire.count(); // a request for inference
			const body = JSON.stringify({ type: "error", error: { type: "permission_error", message: sentinel } });
			return Promise.resolve(new Response(body, { status: 403, headers: { "content-type": "application/json" } }));
		};
		const preconnect = (...args: Parameters<typeof fetch.preconnect>) => {
			if (!live() || !wire.meets(args[0])) original.preconnect(...args);
		};
		return Object.assign(wrapped, original, { preconnect }) as typeof fetch;
	}
}

class Sockets extends Replacement<typeof WebSocket> {
	readonly name = "WebSocket";

	constructor(private readonly wire: Tripwire) {
		super();
	}

	protected get current() {
		return globalThis.WebSocket;
	}

	protected set current(value: typeof WebSocket) {
		globalThis.WebSocket = value;
	}

	/**
	 * The socket is made, to where nobody listens: the host knows what to do with one that is refused (it
	 * goes on to fetch, where the request is counted), and waits for ever after a constructor that throws.
	 */
	protected wrap(original: typeof WebSocket, live: () => boolean): typeof WebSocket {
		const { wire } = this;
		return new Proxy(original, {
			construct(target, args, newTarget) {
				const [address, ...rest] = args as [unknown, ...unknown[]];
				const refused = live() && wire.meets(address);
				return Reflect.construct(target, [refused ? deadSocket : address, ...rest], newTarget) as object;
			},
		});
	}
}

class Http2 extends Replacement<typeof http2.connect> {
	readonly name = "http2.connect";

	constructor(private readonly wire: Tripwire) {
		super();
	}

	protected get current() {
		return http2.connect;
	}

	protected set current(value: typeof http2.connect) {
		(http2 as { connect: typeof http2.connect }).connect = value;
	}

	protected wrap(original: typeof http2.connect, live: () => boolean): typeof http2.connect {
		const { wire } = this;
		return function (this: unknown, ...args: unknown[]) {
			if (live() && wire.meets(args[0])) {
				wire.count();
				throw new Error(sentinel);
			}
			return Reflect.apply(original, this, args) as unknown;
		} as typeof http2.connect;
	}
}
