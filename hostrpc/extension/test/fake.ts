/**
 * A host that is not there: as much of omp as the extension touches, with a switch for what goes wrong.
 * Its values are shaped as the real ones where the extension looks, and nowhere else.
 */
import type { ExtensionAPI, ExtensionContext } from "@oh-my-pi/pi-coding-agent";
import type { Host, Session, Tool } from "../host";

type Json = Record<string, unknown>;
export type Row = { provider: string; id: string; api: string; baseUrl: string } & Json;
export type Result = { content?: unknown; details?: unknown; isError?: boolean } | undefined;

/** What changes the host is counted here, and fails when it is its turn. */
export class Faults {
	steps: string[] = [];
	/** Which step fails, from 1; 0 for none. */
	at = 0;
	/** Whether the step has had its effect by then. */
	late = false;

	step(name: string, act: () => void): void {
		this.steps.push(name);
		const fails = this.steps.length === this.at;
		if (!fails || this.late) act();
		if (fails) throw new Error(`injected at ${name}`);
	}

	begin(at: number, late = false): void {
		this.steps = [];
		this.at = at;
		this.late = late;
	}
}

export class FakeSettings {
	overrides = new Map<string, unknown>();
	/** Paths that this version of the host does not have are not here. */
	values = new Map<string, unknown>([
		["retry.enabled", true],
		["compaction.enabled", true],
		["advisor.enabled", false],
		["features.unexpectedStopDetection", "full"],
		["bash.autoBackground.enabled", true],
		["async.enabled", true],
	]);

	constructor(private readonly faults: Faults) {}

	get(path: string): unknown {
		return this.overrides.has(path) ? this.overrides.get(path) : this.values.get(path);
	}

	override(path: string, value: unknown): void {
		this.faults.step(`override ${path}`, () => this.overrides.set(path, value));
	}

	clearOverride(path: string): void {
		this.faults.step(`clear ${path}`, () => this.overrides.delete(path));
	}
}

export class FakeModels {
	rows: Row[] = [
		row("mock", "small", "anthropic-messages", "http://127.0.0.1:18080"),
		row("anthropic", "claude", "anthropic-messages", "https://api.anthropic.com"),
		row("openai-codex", "codex", "openai-codex-responses", "https://chatgpt.com/backend-api"),
		row("cursor", "auto", "cursor-agent", "https://api2.cursor.sh"),
	];

	constructor(private readonly faults: Faults) {}

	getAll(): Row[] {
		return this.rows;
	}

	find(provider: string, id: string): Row | undefined {
		return this.rows.find(r => r.provider === provider && r.id === id);
	}

	registerProvider(provider: string, config: { baseUrl: string }): void {
		this.faults.step(`provider ${provider}`, () => {
			this.rows = this.rows.map(r => (r.provider === provider ? { ...r, baseUrl: config.baseUrl } : r));
		});
	}
}

export function row(provider: string, id: string, api: string, baseUrl: string): Row {
	return { provider, id, api, baseUrl };
}

type Stream = { events: { error: { errorMessage: string } }[]; push(event: never): void };

/** The host's model library. */
export class FakeAI {
	apis = new Map<string, { run: (model: Row) => unknown; source: string }>();

	constructor(private readonly faults: Faults) {}

	registerCustomApi = (api: string, run: (model: Row) => unknown, source: string): void =>
		this.faults.step("deny api", () => this.apis.set(api, { run, source }));

	unregisterCustomApis = (source: string): void =>
		this.faults.step("no deny api", () => {
			for (const [api, entry] of this.apis) if (entry.source === source) this.apis.delete(api);
		});

	streamSimple = (model: Row): Stream => {
		let stream: unknown;
		this.faults.step("probe", () => {
			stream = this.apis.get(model.api)?.run(model);
		});
		return stream as Stream;
	};

	createAssistantMessageEventStream = (): Stream => {
		const events: Stream["events"] = [];
		return { events, push: event => events.push(event) };
	};

	toolWireSchema = (tool: { parameters?: unknown }): unknown => {
		if (tool.parameters === "broken") throw new Error("no schema");
		return tool.parameters ?? { type: "object" };
	};

	validateToolArguments = (tool: FakeTool, call: { arguments: unknown }): unknown =>
		tool.check ? tool.check(call.arguments) : call.arguments;
}

export type Execute = (
	id: string,
	args: unknown,
	signal: AbortSignal,
	update: (partial: Result) => void,
	context: Json | undefined,
) => Result | Promise<Result>;

export interface FakeTool {
	name: string;
	description: string;
	parameters?: unknown;
	check?(args: unknown): unknown;
	lenientArgValidation?: boolean;
	concurrency?: string | ((args: never) => string);
	execute: Execute;
}

export function tool(name: string, execute: Execute, more: Partial<FakeTool> = {}): FakeTool {
	return { name, description: `the ${name}`, execute, ...more };
}

export const said = (words: string): Result => ({ content: [{ type: "text", text: words }] });

export class FakeSession {
	tools: FakeTool[] = [];
	model: Row | undefined;
	events: Json[] = [];
	isStreaming = false;
	readonly modelRegistry: FakeModels;
	readonly settings: FakeSettings;
	readonly sessionManager: { getSessionId(): string; getCwd(): string };
	agent: { setModel?(model: Row): void; emitExternalEvent?(event: Json): void };
	extensionRunner: { createContext(): Json } | undefined = {
		createContext: () => ({ ui: "the ui", hasUI: true, hasPendingMessages: () => false, autoApprove: true }),
	};

	constructor(
		readonly host: FakeHost,
		public id: string,
	) {
		this.modelRegistry = host.models;
		this.settings = host.settings;
		this.model = host.models.rows[0];
		this.sessionManager = { getSessionId: () => this.id, getCwd: () => `/work/${this.id}` };
		this.agent = {
			setModel: model =>
				host.faults.step("model row", () => {
					this.model = model;
				}),
			emitExternalEvent: event => void this.events.push(event),
		};
	}

	getAllToolInfos = () => this.tools;
	getAllToolNames = () => this.tools.map(t => t.name);
	getEnabledToolNames = () => this.getAllToolNames();
	/** Aliases are resolved, as the host does. */
	getToolByName = (name: string) => this.tools.find(t => t.name === name.replace("xd://", ""));

	get real(): Session {
		return this as unknown as Session;
	}
}

interface Ref {
	id: string;
	kind: string;
	createdAt: number;
	session: FakeSession | null;
}

export class FakeRegistry {
	refs: Ref[] = [];
	#listeners: ((event: { type: string }) => void)[] = [];

	list(): Ref[] {
		return [...this.refs];
	}

	onChange(listener: (event: { type: string }) => void): void {
		this.#listeners.push(listener);
	}

	emit(type: string): void {
		for (const listener of this.#listeners) listener({ type });
	}

	remove(session: FakeSession): void {
		this.refs = this.refs.filter(ref => ref.session !== session);
		this.emit("removed");
	}
}

type Handler = (event: Json, ctx: ExtensionContext) => unknown;
export interface FakeCommand {
	getArgumentCompletions(prefix: string): { value: string }[];
	handler(args: string, ctx: ExtensionContext): Promise<void>;
}

/** One instance of the extension API: of the process, of a subagent, of an ACP session. */
export class FakeAPI {
	handlers = new Map<string, Handler[]>();
	commands = new Map<string, FakeCommand>();
	providers = new Map<string, Json>();
	chosen: Row[] = [];
	readonly logger;
	readonly pi;

	constructor(readonly host: FakeHost) {
		this.logger = host.logger;
		this.pi = {
			VERSION: "18.2.3",
			getAgentDir: () => host.agentDir,
			AgentRegistry: { global: () => host.registry },
			settings: host.settings,
		};
	}

	on = (event: string, handler: Handler) => void this.handlers.set(event, [...(this.handlers.get(event) ?? []), handler]);
	registerCommand = (name: string, command: FakeCommand) => void this.commands.set(name, command);
	registerProvider = (name: string, config: Json) => void this.providers.set(name, config);
	getAllTools = () => this.host.ownTools;
	setModel = async (model: Row) => {
		this.chosen.push(model);
		return true;
	};

	async emit(event: string, ctx: FakeContext, more: Json = {}): Promise<void> {
		for (const handler of this.handlers.get(event) ?? []) await handler({ type: event, ...more }, ctx.real);
	}

	get real(): ExtensionAPI {
		return this as unknown as ExtensionAPI;
	}
}

export class FakeContext {
	notices: string[] = [];
	statuses: (string | undefined)[] = [];
	hasUI = true;
	mode = "tui";
	/** What the host can choose from, the preferred one at the head. */
	choice: Row[] = [];
	preferred: Row | undefined;
	readonly ui = {
		notify: (words: string, level: string) => void this.notices.push(`${level}: ${words}`),
		setStatus: (_key: string, words: string | undefined) => void this.statuses.push(words),
	};
	readonly models = { list: () => this.choice, resolve: () => this.preferred };
	readonly sessionManager;
	readonly cwd;

	constructor(readonly session: FakeSession) {
		this.sessionManager = session.sessionManager;
		this.cwd = session.sessionManager.getCwd();
	}

	get model(): Row | undefined {
		return this.session.model;
	}

	get real(): ExtensionContext {
		return this as unknown as ExtensionContext;
	}
}

export class FakeHost {
	readonly faults = new Faults();
	readonly registry = new FakeRegistry();
	readonly settings = new FakeSettings(this.faults);
	readonly models = new FakeModels(this.faults);
	readonly ai = new FakeAI(this.faults);
	agentDir = "/nowhere";
	/** Tools of the extension API, for a host without a main session. */
	ownTools: FakeTool[] = [];
	log: string[] = [];
	readonly logger = {
		debug: (words: string, more?: unknown) => this.#write("debug", words, more),
		info: (words: string, more?: unknown) => this.#write("info", words, more),
		warn: (words: string, more?: unknown) => this.#write("warn", words, more),
		error: (words: string, more?: unknown) => this.#write("error", words, more),
	};

	#write(level: string, words: string, more: unknown): void {
		this.log.push(`${level} ${words}${more ? ` ${JSON.stringify(more)}` : ""}`);
	}

	/** What detectHost finds here. */
	get real(): Host {
		return {
			version: "18.2.3",
			agentDir: this.agentDir,
			logger: this.logger,
			registry: this.registry,
			wireSchema: (t: Tool) => this.ai.toolWireSchema(t as { parameters?: unknown }),
			validate: (t: Tool, call: { arguments: unknown }) => this.ai.validateToolArguments(t as unknown as FakeTool, call),
			ai: this.ai,
			pi: { settings: this.settings },
			missing: [],
		} as unknown as Host;
	}

	/** A main session that lives; one more under ACP. */
	main(id = "Main", createdAt = 1): FakeSession {
		const session = new FakeSession(this, id);
		this.registry.refs.push({ id, kind: "main", createdAt, session });
		return session;
	}

	sub(id: string): FakeSession {
		const session = new FakeSession(this, id);
		this.registry.refs.push({ id, kind: "sub", createdAt: 0, session });
		return session;
	}
}

/** A promise and its ends. */
export function gate<T = void>(): { promise: Promise<T>; open(value: T): void; fail(error: unknown): void } {
	let open!: (value: T) => void;
	let fail!: (error: unknown) => void;
	const promise = new Promise<T>((resolve, reject) => {
		open = resolve;
		fail = reject;
	});
	return { promise, open, fail };
}

/** Lets all that is ready run. */
export async function settle(): Promise<void> {
	for (let i = 0; i < 20; i++) await Promise.resolve();
}
