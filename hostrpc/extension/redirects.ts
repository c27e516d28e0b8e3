/**
 * The ways to a model that do not go through fetch: anthropic's direct client, the codex web socket,
 * cursor's HTTP/2 (D3). Their providers are sent to an address where nobody listens. Giving only a
 * base URL, and no source, takes nobody's ownership of the provider.
 */
import type { Model } from "@oh-my-pi/pi-ai";
import type { Change } from "./change";
import type { Session } from "./host";

export type Models = Session["modelRegistry"];

/** Port 1 of this machine: refused at once, and never https, which sends anthropic's client back to fetch. */
export const deadEnd = "http://127.0.0.1:1";

/** Providers of which some row goes out by another way than fetch. */
export function besideFetch(rows: readonly Model[]): string[] {
	const names = new Set<string>();
	for (const row of rows) {
		const direct = row.provider === "anthropic" && row.api === "anthropic-messages";
		if (direct || row.api === "openai-codex-responses" || row.api === "cursor-agent") names.add(row.provider);
	}
	return [...names];
}

export class Redirect implements Change {
	readonly name: string;
	#before = new Map<string, string>();

	constructor(
		readonly models: Models,
		readonly provider: string,
	) {
		this.name = `provider ${provider}`;
	}

	/** Also made again, where something has put the real address back. */
	make(): void {
		const rows = this.#rows();
		if (rows.every(row => row.baseUrl === deadEnd)) return;
		if (this.#before.size === 0) for (const row of rows) this.#before.set(row.id, row.baseUrl);
		this.models.registerProvider(this.provider, { baseUrl: deadEnd });
		if (!this.#rows().every(row => row.baseUrl === deadEnd)) throw new Error("its address could not be changed");
	}

	takeBack(): void {
		const [first] = this.#before.values();
		if (first !== undefined) this.models.registerProvider(this.provider, { baseUrl: first });
	}

	/** Whether every row is as it was. Rows of one provider with several addresses get one of them back. */
	restored(): boolean {
		const rows = new Map(this.#rows().map(row => [row.id, row.baseUrl]));
		return [...this.#before].every(([id, baseUrl]) => rows.get(id) === baseUrl);
	}

	#rows(): Model[] {
		return this.models.getAll().filter(row => row.provider === this.provider);
	}
}
