/**
 * Which sessions of the host are main ones and live. omp has one, registered as Main, except under
 * ACP, where each client session is a main one and several live at once.
 */
import type { ExtensionContext } from "@oh-my-pi/pi-coding-agent";
import type { Registry, Session } from "./host";

export class Sessions {
	/** Sessions that have begun their shutdown: the registry still lists them then. */
	#ending = new WeakSet<Session>();

	constructor(private readonly registry: Registry | undefined) {}

	/** The live main sessions, the one that started first at the head (P2). */
	mains(): Session[] {
		const live = (this.registry?.list() ?? []).filter(ref => ref.kind === "main" && ref.session !== null);
		live.sort((a, b) => a.createdAt - b.createdAt); // stable: equal ones stay in their order
		return live.map(ref => ref.session as Session).filter(session => !this.#ending.has(session));
	}

	/** Main: where tools run. */
	main(): Session | undefined {
		return this.mains()[0];
	}

	/** The main session that a context belongs to; undefined for a subagent's. */
	of(ctx: ExtensionContext): Session | undefined {
		const id = idOf(ctx);
		for (const ref of this.registry?.list() ?? []) {
			if (ref.kind === "main" && ref.session?.sessionManager.getSessionId() === id) return ref.session;
		}
		return undefined;
	}

	ends(session: Session): void {
		this.#ending.add(session);
	}

	onChange(changed: () => void): void {
		this.registry?.onChange(event => {
			if (event.type !== "metadata_changed") changed();
		});
	}
}

/** The id of a context's session. It changes with /new while the context lives. */
export function idOf(ctx: ExtensionContext): string {
	return ctx.sessionManager.getSessionId();
}
