/**
 * The process of the sidecar: started, greeted, started again when it dies (P6).
 */
import * as path from "node:path";
import { text } from "./change";
import { Channel, RpcError } from "./channel";
import { ErrorCode, type HelloResult, ToSidecar } from "./protocol";
import type { Logger } from "./host";

const firstPause = 200;
const longestPause = 5_000;
const steadyAfter = 60_000;
const maxFailures = 5;
const helloLimit = 5_000;
/** Bytes that may wait for a sidecar that does not read. */
const maxQueued = 512 << 20;

export interface SidecarOptions {
	/** Absolute path of the binary; it is never looked for. */
	binary: string;
	logger: () => Logger;
	hello(): unknown;
	handle(method: string, params: unknown): unknown;
	/** hello was answered. */
	up(channel: Channel, hello: HelloResult): void;
	/** The process ended. */
	down(): void;
	/** It will not be started again by itself; said once. */
	givenUp(reason: string): void;
}

type Process = ReturnType<typeof spawn>;

function spawn(binary: string) {
	return Bun.spawn([binary, "sidecar"], {
		stdin: "pipe",
		stdout: "pipe",
		stderr: "pipe", // the terminal is the host's
		detached: true, // Ctrl-C and Ctrl-Z at the terminal are not the sidecar's
		windowsHide: true,
	});
}

export class Sidecar {
	#process: Process | undefined;
	#channel: Channel | undefined;
	#restart: Timer | undefined;
	#failures = 0;
	#pause = firstPause;
	#lastLines: string[] = [];
	#settled: (() => void)[] = [];
	/** Why it is not running and will not be by itself. */
	stopped: string | undefined;

	constructor(private readonly opt: SidecarOptions) {}

	/** Starts it unless it runs, is about to, or was given up. */
	ensure(): void {
		if (!this.#process && !this.#restart && this.stopped === undefined) this.#start();
	}

	/** Starts it though it was given up. */
	retry(): void {
		this.stopped = undefined;
		this.#failures = 0;
		this.#pause = firstPause;
		clearTimeout(this.#restart);
		this.#restart = undefined;
		if (!this.#process) this.#start();
	}

	/** The connection that hello was answered on. */
	get channel(): Channel | undefined {
		return this.#channel;
	}

	get pid(): number | undefined {
		return this.#process?.pid;
	}

	/** Resolves when it is up or given up, at the latest after `limit` milliseconds. */
	settled(limit: number): Promise<void> {
		if (this.#channel || this.stopped !== undefined) return Promise.resolve();
		return new Promise(resolve => {
			const timer = setTimeout(resolve, limit);
			this.#settled.push(() => {
				clearTimeout(timer);
				resolve();
			});
		});
	}

	#settle(): void {
		for (const resolve of this.#settled.splice(0)) resolve();
	}

	#start(): void {
		const began = Date.now();
		let child: Process;
		try {
			child = spawn(this.opt.binary);
		} catch (error) {
			this.#giveUp(`${this.opt.binary} cannot be started (${text(error)}); run \`a2mcp install\``);
			return;
		}
		this.#process = child;
		child.unref();
		const queue = { size: 0 };
		const channel = new Channel({
			write: line => write(child, queue, line),
			handle: this.opt.handle,
			odd: what => this.opt.logger().warn(`a2mcp: ${what}`),
		});
		let answered = false;
		channel
			.request<HelloResult>(ToSidecar.hello, this.opt.hello(), helloLimit)
			.then(hello => {
				answered = true;
				this.#failures = 0;
				this.#channel = channel;
				this.opt.up(channel, hello);
				this.#settle();
			})
			.catch(error => {
				if (error instanceof RpcError && error.code === ErrorCode.protocolSkew) this.#giveUp(error.message);
				child.kill("SIGKILL"); // one that was given up makes room for the next, and may not listen any more
			});
		void this.#read(child, channel);
		void this.#drain(child);
		child.exited
			.then(code => {
				channel.close();
				this.#ended(Date.now() - began, answered, `exit code ${code}`);
			})
			.catch(error => this.opt.logger().error("a2mcp: waiting for the sidecar", { error: String(error) }));
	}

	async #read(child: Process, channel: Channel): Promise<void> {
		try {
			for await (const chunk of child.stdout) channel.feed(chunk);
		} catch (error) {
			this.opt.logger().warn("a2mcp: reading from the sidecar", { error: String(error) });
		}
	}

	async #drain(child: Process): Promise<void> {
		try {
			const decoder = new TextDecoder();
			let rest = "";
			for await (const chunk of child.stderr) {
				const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
				rest = (lines.pop() ?? "").slice(-64_000);
				for (const line of lines) this.#say(line);
			}
			if (rest !== "") this.#say(rest);
		} catch (error) {
			this.opt.logger().warn("a2mcp: reading the sidecar's log", { error: String(error) });
		}
	}

	#say(line: string): void {
		this.#lastLines.push(line);
		if (this.#lastLines.length > 5) this.#lastLines.shift();
		this.opt.logger().info(line);
	}

	#ended(lived: number, answered: boolean, how: string): void {
		this.#process = undefined;
		this.#channel = undefined;
		this.opt.down();
		if (this.stopped !== undefined) return;
		if (!answered && ++this.#failures === maxFailures) {
			const last = this.#lastLines.at(-1);
			this.#giveUp(`${path.basename(this.opt.binary)} ended ${maxFailures} times before it answered (${how}${last ? `: ${last}` : ""})`);
			return;
		}
		if (lived > steadyAfter) this.#pause = firstPause;
		this.opt.logger().warn(`a2mcp: the sidecar ended (${how}); starting it again`, { pause: this.#pause });
		this.#restart = setTimeout(() => {
			this.#restart = undefined;
			this.#start();
		}, this.#pause);
		this.#restart.unref?.();
		this.#pause = Math.min(2 * this.#pause, longestPause);
	}

	#giveUp(reason: string): void {
		this.stopped = reason;
		this.opt.givenUp(reason);
		this.#settle();
	}
}

/** Writes a line, or throws while too much waits for a child that does not read. */
function write(child: Process, queue: { size: number }, line: string): void {
	if (queue.size > maxQueued) throw new Error("the sidecar does not read");
	child.stdin.write(line);
	const flushed = child.stdin.flush(); // the same promise as the write's
	if (!(flushed instanceof Promise)) return;
	queue.size += line.length;
	const done = () => {
		queue.size -= line.length;
	};
	flushed.then(done, done); // a broken pipe is the end, and exited tells of it
}

/** Where the binary is: beside the extension, or where a developer says. */
export function binaryFor(folder: string): string {
	const named = process.env.A2MCP_BINARY;
	if (named && path.isAbsolute(named)) return named;
	return path.join(folder, process.platform === "win32" ? "a2mcp.exe" : "a2mcp");
}
