/**
 * What the host's screen shows of remote calls: the cards that it draws for its own (M9). They never
 * decide anything: a host that refuses the events loses the card and nothing else.
 */
import type { Host, Session } from "./host";

type Event = Parameters<Session["agent"]["emitExternalEvent"]>[0];
export interface Result {
	content: unknown[];
	details?: unknown;
	isError?: boolean;
}

interface Card {
	session: Session;
	name: string;
	args: unknown;
	/** A turn of its session ended since it was drawn: the host takes no end for it any more. */
	sealed: boolean;
}

export class Cards {
	#open = new Map<string, Card>();

	constructor(private readonly host: Host) {}

	/** Whether a session can show cards. */
	static able(session: Session | undefined): boolean {
		return typeof session?.agent?.emitExternalEvent === "function";
	}

	/** A model turn of a main session ended, and with it every card on its screen. A subagent's turn leaves them. */
	turnEnded(session: Session | undefined): void {
		for (const card of this.#open.values()) if (card.session === session) card.sealed = true;
	}

	start(session: Session, id: string, name: string, args: unknown): void {
		this.#open.set(id, { session, name, args, sealed: false });
		this.#emit(session, { type: "tool_execution_start", toolCallId: id, toolName: name, args });
	}

	update(id: string, partial: Result): void {
		const card = this.#open.get(id);
		if (!card) return;
		this.#emit(card.session, {
			type: "tool_execution_update",
			toolCallId: id,
			toolName: card.name,
			args: card.args,
			partialResult: partial,
		});
	}

	end(id: string, result: Result): void {
		const card = this.#open.get(id);
		if (!card) return;
		this.#open.delete(id);
		const { session, name, args } = card;
		const isError = result.isError === true;
		this.#emit(session, { type: "tool_execution_end", toolCallId: id, toolName: name, result, isError });
		if (!card.sealed) return;
		// That end went nowhere, so the card is drawn once more under a new id.
		const again = `${id}-again`;
		this.#emit(session, { type: "tool_execution_start", toolCallId: again, toolName: name, args });
		this.#emit(session, { type: "tool_execution_end", toolCallId: again, toolName: name, result, isError });
	}

	#emit(session: Session, event: Event): void {
		try {
			session.agent.emitExternalEvent(event);
		} catch (error) {
			this.host.logger.warn("a2mcp: the host refused a card", { error: String(error) });
		}
	}
}
