/**
 * Settings that keep the host from waking by itself while inference is denied (D4). They are run-time
 * overrides: nothing is written to disk.
 */
import type { Change } from "./change";
import type { Host, Session } from "./host";

type Settings = Session["settings"];
type Path = Parameters<Settings["override"]>[0];

/** Read when a tool is built, so they count only if they are set before that. */
const whenLoaded: [string, unknown][] = [
	["bash.autoBackground.enabled", false],
	["eval.autoBackground.enabled", false],
	["async.enabled", false],
];

const whenArmed: [string, unknown][] = [
	["retry.enabled", false],
	["retry.modelFallback", false],
	["advisor.enabled", false],
	["ttsr.enabled", false],
	["prewalk.enabled", false],
	["task.prewalk", false],
	["autolearn.enabled", false],
	["autolearn.autoContinue", false],
	["compaction.enabled", false],
	["compaction.asyncEnabled", false],
	["compaction.midTurnEnabled", false],
	["compaction.idleEnabled", false],
	["compaction.autoContinue", false],
	["features.unexpectedStopDetection", "none"],
	["title.refreshOnReplan", false],
	["todo.reminders", false],
];

/** The overrides for one session's settings; paths that this version does not have are left out. */
export function quiet(settings: Settings): Change[] {
	return whenArmed.filter(([path]) => known(settings, path)).map(([path, value]) => new Override(settings, path, value));
}

/** Sets what only counts before a session is built. */
export function quietAtLoad(host: Host): void {
	const settings = host.pi.settings as Settings;
	for (const [path, value] of whenLoaded) {
		try {
			if (known(settings, path)) settings.override(path as Path, value as never);
		} catch (error) {
			host.logger.warn("a2mcp: a setting could not be overridden", { path, error: String(error) });
		}
	}
}

function known(settings: Settings, path: string): boolean {
	try {
		return settings.get(path as Path) !== undefined;
	} catch {
		return false;
	}
}

class Override implements Change {
	/** The operator's own override, where there was one. */
	#own: { value: unknown } | undefined;

	constructor(
		private readonly settings: Settings,
		private readonly path: string,
		private readonly value: unknown,
	) {}

	get name(): string {
		return `setting ${this.path}`;
	}

	make(): void {
		const before = this.settings.get(this.path as Path);
		this.settings.clearOverride(this.path as Path);
		this.#own = this.settings.get(this.path as Path) === before ? undefined : { value: before };
		this.settings.override(this.path as Path, this.value as never);
	}

	/** The operator's own is set again; what he wrote into his configuration meanwhile counts from now on. */
	takeBack(): void {
		this.settings.clearOverride(this.path as Path);
		if (this.#own) this.settings.override(this.path as Path, this.#own.value as never);
	}
}
