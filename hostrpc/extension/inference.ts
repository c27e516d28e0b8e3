/**
 * The switch of the host's own inference: what is wished, and the one synchronous block that brings
 * it about (D3–D8). Policy is the sidecar's; it asks with llm/set.
 */
import * as fs from "node:fs";
import * as path from "node:path";
import type { Model } from "@oh-my-pi/pi-ai";
import { type Change, makeAll, takeBackAll } from "./change";
import { DenyApi, SessionRow } from "./denial";
import type { Host, Session } from "./host";
import { quiet, quietAtLoad } from "./overrides";
import { besideFetch, deadEnd, type Models, Redirect } from "./redirects";
import type { LLMResult, LLMState } from "./protocol";
import type { Sessions } from "./sessions";
import { Tripwire } from "./tripwire";

export class Inference {
	/** What is wished: the configuration's word at load, then the last successful request's (D8). */
	#wanted: boolean;
	#armed: Change[] = [];
	#degraded = false;
	#count = 0;
	readonly #api: DenyApi;
	readonly #wire: Tripwire;

	constructor(
		private readonly host: Host,
		private readonly sessions: Sessions,
		/** host:port of the bridge itself, which is never refused. */
		private readonly own: () => string,
		denied: (total: number) => void,
	) {
		const counted = () => denied(++this.#count);
		this.#api = new DenyApi(host, counted);
		this.#wire = new Tripwire(counted);
		this.#wanted = wishedAtLoad(host);
		if (this.#wanted) quietAtLoad(host);
	}

	/** Names of what the switch needs and this host does not have. */
	static lacks(host: Host): string[] {
		const { ai } = host;
		const pieces = {
			registerCustomApi: ai?.registerCustomApi,
			unregisterCustomApis: ai?.unregisterCustomApis,
			streamSimple: ai?.streamSimple,
			createAssistantMessageEventStream: ai?.createAssistantMessageEventStream,
			settings: host.pi.settings,
		};
		return Object.entries(pieces).flatMap(([name, piece]) => (piece === undefined ? [name] : []));
	}

	get state(): LLMState {
		return { wanted: this.#wanted, armed: this.#armed.length > 0, degraded: this.#degraded, denied: this.#count };
	}

	/** Answers llm/set. An error says why nothing was changed. */
	set(deny: boolean): LLMResult {
		const result = deny ? this.#arm() : this.#restore();
		this.#wanted = deny;
		return result;
	}

	/** Brings about again what is wished, where something may have undone it. Never throws (D8). */
	assert(): void {
		if (!this.#wanted) return;
		try {
			this.#arm();
		} catch (error) {
			this.host.logger.warn("a2mcp: inference could not be denied", { error: String(error) }); // the sidecar's llm/set brings it to the operator
		}
	}

	#arm(): LLMResult {
		const mains = this.sessions.mains();
		const refusal = refusalOf(mains);
		const on = this.#armed.length > 0;
		if (refusal !== undefined && !on) throw new Error(refusal);
		this.#degraded = refusal !== undefined;
		if (refusal !== undefined) return this.#result([refusal]); // what is there stays (D10)

		const rows = mains.flatMap(session => session.modelRegistry.getAll());
		for (const address of new Set(rows.map(row => row.baseUrl))) this.#wire.add(address, this.own());
		this.#wire.add(deadEnd, "");
		const changes = this.#wanting(mains);
		makeAll(changes, this.#armed);
		try {
			const row = mains[0]?.model ?? rows[0];
			if (row) this.#api.probe(row);
		} catch (error) {
			if (!on) takeBackAll(changes);
			throw error;
		}
		this.#armed = changes;
		return this.#result([]);
	}

	/**
	 * The whole list in order, with the changes that are made already in their places: each of them may
	 * be made again. Overrides are not, so that an operator's edit meanwhile stands.
	 */
	#wanting(mains: Session[]): Change[] {
		const made = this.#armed;
		const registries = new Set<Models>(mains.map(session => session.modelRegistry));
		const redirects = [...registries].flatMap(models =>
			besideFetch(models.getAll()).map(
				provider =>
					made.find(change => change instanceof Redirect && change.models === models && change.provider === provider) ??
					new Redirect(models, provider),
			),
		);
		const sessions = mains.flatMap(session => {
			const row = made.find(change => change instanceof SessionRow && change.session === session);
			if (row) return [row];
			return [new SessionRow(session), new Once(quiet(session.settings))];
		});
		const settled = made.filter(change => change instanceof Once);
		return [this.#api, ...redirects, ...this.#wire.changes, ...settled, ...sessions];
	}

	#restore(): LLMResult {
		const changes = this.#armed;
		takeBackAll(changes);
		this.#armed = [];
		this.#degraded = false;
		for (const session of this.sessions.mains()) renew(session);
		const lost = changes.filter(change => change instanceof Redirect && !change.restored()).map(change => (change as Redirect).provider);
		return this.#result(lost);
	}

	#result(missing: string[]): LLMResult {
		const { armed, degraded, denied } = this.state;
		const rows = this.#armed.filter(change => change instanceof SessionRow);
		return {
			armed,
			degraded,
			denied,
			shadowed: this.#armed.filter(change => change instanceof Redirect).map(change => change.provider),
			tripwireKeys: armed ? this.#wire.keys.size : 0,
			modelPushed: rows.map(row => row.pushed).find(name => name !== null) ?? null,
			missing,
		};
	}
}

/** Changes that are made once for all, and taken back together. */
class Once implements Change {
	readonly name = "settings";
	#made = false;

	constructor(private readonly changes: Change[]) {}

	make(): void {
		if (!this.#made) makeAll(this.changes);
		this.#made = true;
	}

	takeBack(): void {
		if (this.#made) takeBackAll(this.changes);
		this.#made = false;
	}
}

/** A row that was chosen while its provider was sent away still has the address of that time. */
function renew(session: Session): void {
	const row = session.model;
	if (row?.baseUrl !== deadEnd) return;
	const fresh = session.modelRegistry.find(row.provider, row.id);
	if (fresh) session.agent.setModel(fresh);
}

/** Why nothing may be changed (D5). */
function refusalOf(mains: Session[]): string | undefined {
	if (mains.length === 0) return "there is no live main session";
	for (const session of mains) {
		const row = session.modelRegistry.getAll().find(hasTransport);
		if (row) {
			const { transport } = row as Model & { transport?: string };
			return `provider ${row.provider} uses the transport ${transport}, which omp serves before an extension can refuse; take it out of models.yml`;
		}
	}
	return undefined;
}

function hasTransport(row: Model): boolean {
	return (row as Model & { transport?: string }).transport !== undefined;
}

/** The configuration's own word, so that a configured deny holds though the sidecar is late or missing. */
function wishedAtLoad(host: Host): boolean {
	const file = process.env.A2MCP_CONFIG || path.join(host.agentDir, "a2mcp.json");
	let text: string;
	try {
		text = fs.readFileSync(file, "utf8");
	} catch {
		return false; // made at the first start, with allow
	}
	try {
		return (JSON.parse(text) as { host_llm?: unknown }).host_llm === "deny";
	} catch {
		return /"host_llm"\s*:\s*"deny"/.test(text); // a broken file still says what was meant
	}
}
