/**
 * A sidecar whose words are the test's: the process that the extension starts only passes bytes on to
 * a socket in here.
 */
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { RpcError } from "../channel";

export interface Message {
	id?: string;
	method?: string;
	params?: Record<string, unknown>;
	result?: unknown;
	error?: { code: number; message: string };
}

type Answer = (params: Record<string, unknown>, link: Link) => unknown;
/** An answer that never comes. */
export const silence = Symbol("silence");

const relay = (socket: string) => `#!${process.execPath}
const socket = require("node:net").connect(${JSON.stringify(socket)});
socket.on("error", () => process.exit(8));
socket.on("close", () => process.exit(7));
process.stdin.pipe(socket);
socket.pipe(process.stdout);
process.stderr.write("[a2mcp] relaying: " + process.argv.slice(2) + "\\nhalf a line");
`;

type Socket = { write(text: string): number; end(): void };

/** One process of the sidecar. */
export class Link {
	received: Message[] = [];
	#waiters: { want: (message: Message) => boolean; got: (message: Message) => void }[] = [];
	#rest = "";
	#lastId = 0;

	constructor(
		private readonly of: FakeSidecar,
		private readonly socket: Socket,
	) {}

	feed(chunk: Uint8Array): void {
		const lines = (this.#rest + Buffer.from(chunk).toString("latin1")).split("\n");
		this.#rest = lines.pop() ?? "";
		for (const line of lines) void this.#take(JSON.parse(Buffer.from(line, "latin1").toString()) as Message);
	}

	async #take(message: Message): Promise<void> {
		this.received.push(message);
		for (const waiter of this.#waiters) if (waiter.want(message)) waiter.got(message);
		if (message.id === undefined || message.method === undefined) return;
		try {
			const result = await this.of.answers[message.method]?.(message.params ?? {}, this);
			if (result !== silence) this.#send({ id: message.id, result });
		} catch (error) {
			const code = error instanceof RpcError ? error.code : -32603;
			this.#send({ id: message.id, error: { code, message: (error as Error).message } });
		}
	}

	#send(message: Message): void {
		this.socket.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
	}

	/** The first message of this kind, now or later. */
	until(want: (message: Message) => boolean): Promise<Message> {
		const there = this.received.find(want);
		if (there) return Promise.resolve(there);
		return new Promise(got => this.#waiters.push({ want, got }));
	}

	/** The first message of this method. */
	got(method: string): Promise<Message> {
		return this.until(message => message.method === method);
	}

	all(method: string): Record<string, unknown>[] {
		return this.received.filter(message => message.method === method).map(message => message.params ?? {});
	}

	async ask<R = Record<string, unknown>>(method: string, params?: unknown): Promise<R> {
		const id = `s${++this.#lastId}`;
		this.#send({ id, method, params: params as Message["params"] });
		const { result, error } = await this.until(message => message.id === id && message.method === undefined);
		if (error) throw new RpcError(error.code, error.message);
		return result as R;
	}

	notify(method: string, params: unknown): void {
		this.#send({ method, params: params as Message["params"] });
	}

	/** The process dies. */
	end(): void {
		this.socket.end();
	}
}

export class FakeSidecar {
	readonly folder = fs.mkdtempSync(path.join(os.tmpdir(), "a2mcp-"));
	readonly binary = path.join(this.folder, "a2mcp.js");
	readonly links: Link[] = [];
	answers: Record<string, Answer> = {
		hello: () => ({ protocol: 1, version: "v1.0.0", commands: [{ name: "a2mcp", description: "", words: ["status", "token", "tunnel", "tunnel stop"] }], hostLlm: "allow" }),
		session_start: () => ({ url: "http://127.0.0.1:33615/" }),
		session_shutdown: () => ({ released: true }),
		command: ({ args }) => ({ level: "info", text: `ran ${args}` }),
	};
	#waiters: (() => void)[] = [];
	readonly #listener;

	constructor() {
		const socket = path.join(this.folder, "s");
		this.script(relay(socket));
		this.#listener = Bun.listen<Link>({
			unix: socket,
			socket: {
				open: s => {
					s.data = new Link(this, s);
					this.links.push(s.data);
					for (const wake of this.#waiters.splice(0)) wake();
				},
				data: (s, chunk) => s.data.feed(chunk),
			},
		});
	}

	/** What is run from the next start on. */
	script(text: string): void {
		fs.rmSync(this.binary, { force: true });
		fs.writeFileSync(this.binary, text, { mode: 0o755 });
	}

	/** The n-th process, from 1, once it is there. */
	async link(n = 1): Promise<Link> {
		for (;;) {
			const link = this.links[n - 1];
			if (link) return link;
			await new Promise<void>(wake => this.#waiters.push(wake));
		}
	}

	/** Ends what runs; nothing can be started any more. */
	stop(): void {
		fs.rmSync(this.folder, { recursive: true, force: true });
		for (const link of this.links) link.end();
		this.#listener.stop();
	}
}
