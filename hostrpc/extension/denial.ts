/**
 * A model API that refuses at once, and the session's own model row turned into one of that API (D3).
 * It is registered under a source of its own that no provider ever is, so the clean-up of extension
 * sources at each new session leaves it alone.
 */
import type { Api, AssistantMessage, Model } from "@oh-my-pi/pi-ai";
import type { Change } from "./change";
import type { Host, Session } from "./host";

/** What a refused request reads. The host does not take it for something to try again. */
export const sentinel = "a2mcp takeover: host inference is disabled in this mode";
const denyApi = "a2mcp-deny" as Api;
const source = "a2mcp-deny";

export class DenyApi implements Change {
	readonly name = "deny api";

	constructor(
		private readonly host: Host,
		private readonly counted: () => void,
	) {}

	#probing = false;
	#probed = false;

	make(): void {
		const ai = this.host.ai;
		if (!ai) throw new Error("the host's model library is not there");
		ai.registerCustomApi(
			denyApi,
			model => {
				if (this.#probing) this.#probed = true;
				else this.counted();
				return refuse(this.host, model, sentinel);
			},
			source,
		);
	}

	takeBack(): void {
		this.host.ai?.unregisterCustomApis(source);
	}

	/** Sends a request down the deny row; throws if it does not end here. */
	probe(row: Model): void {
		this.#probing = true;
		this.#probed = false;
		try {
			this.host.ai?.streamSimple(denied(row), { messages: [] }, { apiKey: "none" });
		} finally {
			this.#probing = false;
		}
		if (!this.#probed) throw new Error("a request through the deny row did not reach it");
	}
}

/** A stream that ends at once with an error. */
export function refuse(host: Host, model: Model, message: string) {
	const ai = host.ai;
	if (!ai) throw new Error(message);
	const stream = ai.createAssistantMessageEventStream();
	const error: AssistantMessage = {
		role: "assistant",
		content: [],
		api: model.api,
		provider: model.provider,
		model: model.id,
		usage: {
			input: 0,
			output: 0,
			cacheRead: 0,
			cacheWrite: 0,
			totalTokens: 0,
			cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
		},
		stopReason: "error",
		errorMessage: message,
		timestamp: Date.now(),
	};
	queueMicrotask(() => stream.push({ type: "error", reason: "error", error }));
	return stream;
}

/** The same row behind the deny API. Its headers are not resolved: that may run a program (D3). */
function denied(row: Model): Model {
	return { ...row, api: denyApi, resolveHeaders: undefined } as Model;
}

/** The model row of one main session. */
export class SessionRow implements Change {
	#real: Model | undefined;

	constructor(readonly session: Session) {}

	get name(): string {
		return "model row";
	}

	/** Also made again: a row that the operator or a resumed session chose meanwhile is the one to give back. */
	make(): void {
		const row = this.session.model;
		if (!row || row.api === denyApi) return;
		this.#real = row;
		this.session.agent.setModel(denied(row));
	}

	/** A row that was chosen meanwhile stays (D7). */
	takeBack(): void {
		if (this.#real && this.session.model?.api === denyApi) this.session.agent.setModel(this.#real);
	}

	/** Name of the row that was pushed aside. */
	get pushed(): string | null {
		return this.#real ? `${this.#real.provider}/${this.#real.id}` : null;
	}
}
