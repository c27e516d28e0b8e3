/**
 * What the operator sees and types: notices, the status line, /a2mcp.
 */
import type { ExtensionAPI, ExtensionContext } from "@oh-my-pi/pi-coding-agent";
import type { Logger } from "./host";
import type { Command, Message } from "./protocol";
import { idOf, type Sessions } from "./sessions";

const statusKey = "a2mcp";
/** How long a command holds up the prompt. */
const patience = 5_000;

/** What there is to type while no sidecar runs; the sidecar's own words replace it. */
const withoutSidecar: Command = {
	name: "a2mcp",
	description: "the bridge that lets MCP clients call this host's tools",
	words: ["start", "allow"],
};

export class Operator {
	#command = withoutSidecar;
	/** Contexts of the sessions that live, the first to start at the head. */
	#contexts: ExtensionContext[] = [];
	#status = "";

	constructor(
		private readonly sessions: Sessions,
		private readonly logger: () => Logger,
	) {}

	/** What the sidecar offers; nothing when it is gone. */
	offer(commands: Command[]): void {
		this.#command = commands.find(command => command.name === withoutSidecar.name) ?? withoutSidecar;
	}

	register(pi: ExtensionAPI, run: (args: string, sessionId: string) => Promise<Message>): void {
		pi.registerCommand(withoutSidecar.name, {
			description: withoutSidecar.description,
			getArgumentCompletions: prefix => {
				const { words } = this.#command;
				const begun = prefix.trimStart();
				if (words.includes(begun)) return null; // accepting an offer would take the Enter that runs it
				return words.filter(word => word.startsWith(begun)).map(word => ({ value: word, label: word }));
			},
			handler: (args, ctx) => this.#answer(ctx, run(args, idOf(ctx))),
		});
	}

	/** Shows the answer; one that takes its time (a download) comes as a notice, and the prompt is free meanwhile. */
	async #answer(ctx: ExtensionContext, answer: Promise<Message>): Promise<void> {
		const soon = await Promise.race([answer, pause(patience)]);
		if (soon) {
			this.#show(ctx, soon);
			return;
		}
		this.#show(ctx, { level: "info", text: "a2mcp is at it; the answer will be shown here" });
		answer.then(
			message => this.notice(message),
			error => this.logger().warn("a2mcp: a command", { error: String(error) }),
		);
	}

	began(ctx: ExtensionContext): void {
		this.#contexts.push(ctx);
		this.#setStatus(ctx);
	}

	ended(ctx: ExtensionContext): void {
		const id = idOf(ctx);
		this.#contexts = this.#contexts.filter(other => idOf(other) !== id);
	}

	/** A notice goes to the context of the first session while it lives, then to Main's (P2). */
	notice(message: Message): void {
		const main = this.sessions.main()?.sessionManager.getSessionId();
		const ctx = this.#contexts.find(c => c.hasUI) ?? this.#contexts.find(c => idOf(c) === main);
		if (ctx) this.#show(ctx, message);
		else this.logger().info(`a2mcp: ${message.text}`, { level: message.level });
	}

	/** One short line that stays on the screen; empty takes it away. */
	status(text: string): void {
		this.#status = text;
		for (const ctx of this.#contexts) this.#setStatus(ctx);
	}

	#setStatus(ctx: ExtensionContext): void {
		try {
			ctx.ui.setStatus(statusKey, this.#status || undefined);
		} catch (error) {
			this.logger().warn("a2mcp: the status line", { error: String(error) });
		}
	}

	#show(ctx: ExtensionContext, message: Message): void {
		const level = message.level === "warning" || message.level === "error" ? message.level : "info";
		try {
			ctx.ui.notify(message.text, level);
		} catch (error) {
			this.logger().warn(`a2mcp: ${message.text}`, { error: String(error) });
		}
	}
}

function pause(ms: number): Promise<undefined> {
	return new Promise(resolve => {
		setTimeout(() => resolve(undefined), ms).unref?.();
	});
}
