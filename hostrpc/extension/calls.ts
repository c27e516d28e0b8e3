/**
 * The tools of the main session, listed and called for the sidecar. A call is one whole step: exact
 * name in the live registry, validation, start card, run, end card, answer. What happens to the
 * answer afterwards is the sidecar's business.
 */
import type { Cards, Result } from "./cards";
import { text } from "./change";
import { Exclusive } from "./exclusive";
import type { Host, Session, Tool } from "./host";
import { Progress } from "./progress";
import { CallState, ErrorCode, Outcome } from "./protocol";
import { maxLine, RpcError } from "./channel";
import type { Sessions } from "./sessions";

/** How long a cancelled tool may take to end by itself; the answer is due within a second. */
const cancelGrace = 500;

/** What surrounds a result in its line, at most. */
const envelope = 4_096;

/**
 * How deep arguments may be nested. omp's validation takes a time that grows with more than the depth,
 * and is done before anybody is asked: at 10,000 levels it holds the whole host up for minutes.
 */
const maxDepth = 100;

/** What tools/call is answered with. */
export interface Answer {
	outcome: string;
	content?: unknown[];
	isError?: boolean;
	/** The host goes on with it and will wake its model with the result (M14). */
	background?: boolean;
}

interface Call {
	id: string;
	name: string;
	controller: AbortController;
	/** Set once it was answered; what comes later is only logged. */
	answered: boolean;
	/** Set while the operator is asked about it. */
	asking: boolean;
	/** Gives its turn to the next exclusive call. */
	leave?: () => void;
}

/** What a call tells while it runs. */
export interface Reports {
	state(callId: string, state: string): void;
	progress(callId: string, content: unknown[]): void;
}

export class Calls {
	#running = new Map<string, Call>();
	#exclusive = new Exclusive();

	constructor(
		private readonly host: Host,
		private readonly sessions: Sessions,
		private readonly cards: Cards,
		private readonly report: Reports,
		/** The tools the host has without a main session (M3). */
		private readonly otherwise: () => { name: string; description: string }[],
	) {}

	/** Answers tools/list. */
	list(): unknown {
		const main = this.sessions.main();
		const infos = main ? main.getAllToolInfos() : this.otherwise();
		return {
			tools: infos.map(info => ({ name: info.name, description: info.description, inputSchema: this.#schema(info as Tool) })),
			source: main ? "main" : "extension",
		};
	}

	#schema(info: Tool): unknown {
		try {
			const schema = this.host.wireSchema(info);
			JSON.stringify(schema); // one that is no JSON would cost the whole list
			return schema;
		} catch (error) {
			this.host.logger.warn("a2mcp: a tool has a schema that cannot be told", { tool: info.name, error: String(error) });
			return { type: "object" };
		}
	}

	/** Names of the registry as it is now, for noticing that it changed. */
	names(): string {
		return (this.sessions.main()?.getAllToolNames() ?? []).join("\n");
	}

	/** Answers tools/call; never rejects but for params of the wrong shape. */
	async call(params: { callId?: unknown; name?: unknown; arguments?: unknown }): Promise<Answer> {
		const { callId, name } = params;
		if (typeof callId !== "string" || typeof name !== "string") {
			throw new RpcError(ErrorCode.invalidParams, "tools/call needs a callId and a name");
		}
		const main = this.sessions.main();
		if (!main) {
			return { outcome: this.otherwise().some(tool => tool.name === name) ? Outcome.noMain : Outcome.notExposed };
		}
		// getToolByName alone would also resolve aliases such as xd://bash (M5).
		const tool = main.getAllToolNames().includes(name) ? main.getToolByName(name) : undefined;
		if (!tool) return { outcome: Outcome.notExposed };

		const call: Call = { id: callId, name, controller: new AbortController(), answered: false, asking: false };
		this.#running.set(callId, call);
		try {
			return await Promise.race([this.#carryOut(call, main, tool, params.arguments ?? {}), cancelled(call)]);
		} finally {
			call.answered = true;
			this.#running.delete(callId);
			if (call.asking) call.leave?.(); // it does not run any more, whatever the operator says to the question
		}
	}

	/** The operator is being asked about a call, or has answered. */
	asking(callId: string, asking: boolean): void {
		const call = this.#running.get(callId);
		if (call) call.asking = asking;
	}

	cancel(callId: unknown): void {
		if (typeof callId === "string") this.#running.get(callId)?.controller.abort();
	}

	/** The sidecar is gone and its callers with it. */
	abandon(): void {
		for (const call of this.#running.values()) call.controller.abort();
	}

	/** Whether an id of the host's events is a call of ours. */
	has(callId: string): boolean {
		return this.#running.has(callId);
	}

	async #carryOut(call: Call, main: Session, tool: Tool, raw: unknown): Promise<Answer> {
		if (deeper(raw, maxDepth)) return invalid(`the arguments are nested deeper than ${maxDepth} levels`);
		let args: unknown;
		try {
			args = this.host.validate(tool, { id: call.id, name: call.name, arguments: raw });
		} catch (error) {
			if (!tool.lenientArgValidation) return invalid(text(error));
			args = raw; // the tool wants to judge by itself
		}
		if (!isExclusive(tool, args)) return this.#run(call, main, tool, args);

		const { signal } = call.controller;
		const waits = this.#exclusive.busy;
		if (waits) this.report.state(call.id, CallState.queued);
		if (!(await this.#exclusive.enter(signal))) return { outcome: Outcome.cancelled };
		if (waits) this.report.state(call.id, CallState.running);
		call.leave = () => {
			call.leave = undefined;
			this.#exclusive.leave();
		};
		try {
			return await this.#run(call, main, tool, args);
		} finally {
			call.leave?.();
		}
	}

	async #run(call: Call, main: Session, tool: Tool, args: unknown): Promise<Answer> {
		const { signal } = call.controller;
		const progress = new Progress(content => {
			if (!call.answered) this.report.progress(call.id, content);
		});
		this.cards.start(main, call.id, call.name, args);
		let result: Result | undefined;
		try {
			result = (await tool.execute(
				call.id,
				args as never,
				signal,
				partial => {
					if (call.answered) return;
					this.cards.update(call.id, partial as Result);
					progress.update(partial?.content);
				},
				contextFor(main, call.controller),
			)) as Result | undefined;
		} catch (error) {
			result = { content: [{ type: "text", text: text(error) }], isError: true };
		}
		result ??= { content: [] };
		progress.end();
		this.cards.end(call.id, result);
		if (call.answered) this.host.logger.info("a2mcp: a cancelled call ended", { callId: call.id, tool: call.name });
		if (signal.aborted) return { outcome: Outcome.cancelled };
		return answerOf(result);
	}
}

/** Settles when a cancelled call has had its time. */
function cancelled(call: Call): Promise<Answer> {
	return new Promise(resolve => {
		call.controller.signal.addEventListener(
			"abort",
			() => {
				setTimeout(() => resolve({ outcome: Outcome.cancelled }), cancelGrace).unref?.();
			},
			{ once: true },
		);
	});
}

/** Whether a value of JSON has more levels than that; level by level, as deep ones break a recursion. */
function deeper(value: unknown, levels: number): boolean {
	let level = [value];
	for (let depth = 0; level.length > 0; depth++) {
		if (depth > levels) return true;
		const next: unknown[] = [];
		for (const one of level) {
			if (typeof one === "object" && one !== null) for (const inner of Object.values(one)) next.push(inner);
		}
		level = next;
	}
	return false;
}

function answerOf(result: Result): Answer {
	const content = Array.isArray(result?.content) ? result.content : [];
	if (tooLarge(content)) {
		return { outcome: Outcome.done, content: [{ type: "text", text: "result too large" }], isError: true };
	}
	const answer: Answer = { outcome: Outcome.done, content, isError: result?.isError === true };
	const details = result?.details as { async?: { state?: string } } | undefined;
	if (details?.async?.state === "running") answer.background = true;
	return answer;
}

/** Whether it would be over the limit of a line. A character takes six bytes at most, so small ones are not written twice. */
export function tooLarge(content: unknown[], limit = maxLine - envelope): boolean {
	let size = 0;
	for (const block of content as ({ text?: string; data?: string } | null)[]) {
		size += (block?.text?.length ?? 0) + (block?.data?.length ?? 0);
	}
	if (size > limit) return true;
	return size > limit / 8 && Buffer.byteLength(JSON.stringify(content)) > limit;
}

/** It did not run, and has no card: the sidecar tells the operator. */
function invalid(why: string): Answer {
	return { outcome: Outcome.invalid, content: [{ type: "text", text: why }] };
}

/** Whether a call has to be alone, judged as the host's own loop judges it. */
function isExclusive(tool: Tool, args: unknown): boolean {
	const mode = tool.concurrency;
	if (typeof mode !== "function") return mode === "exclusive";
	try {
		return mode(args as never) === "exclusive";
	} catch {
		return true;
	}
}

/**
 * What the host gives its tools besides their arguments. The settings are always in it, and nothing
 * that would approve a call: a context without settings asks for everything, one with autoApprove
 * asks for nothing. Without a runner there is none, and the tool's own gate looks at the session.
 */
function contextFor(main: Session, controller: AbortController): never {
	const ctx = main.extensionRunner?.createContext();
	if (!ctx) return undefined as never;
	return {
		ui: ctx.ui,
		hasUI: ctx.hasUI,
		settings: main.settings,
		sessionManager: main.sessionManager,
		modelRegistry: main.modelRegistry,
		model: main.model,
		isIdle: () => !main.isStreaming,
		hasQueuedMessages: () => ctx.hasPendingMessages(),
		abort: () => controller.abort(),
		toolNames: main.getEnabledToolNames(),
	} as never;
}
