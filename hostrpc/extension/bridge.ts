/**
 * The bridge of this process: one, whatever number of sessions and modules there are.
 */
import type { ExtensionAPI, ExtensionContext } from "@oh-my-pi/pi-coding-agent";
import { Calls } from "./calls";
import { Cards } from "./cards";
import type { Channel } from "./channel";
import { RpcError } from "./channel";
import { text } from "./change";
import type { Host, Session } from "./host";
import { Inference } from "./inference";
import { registerOffline, settleModel } from "./offline";
import { Operator } from "./operator";
import * as p from "./protocol";
import { idOf, Sessions } from "./sessions";
import { binaryFor, Sidecar } from "./sidecar";

/** How long the host waits for what it tells. */
const startLimit = 10_000;
const shutdownLimit = 1_500;
/** A tunnel may have to be downloaded first: 10 minutes, and twice 30 s to connect. */
const commandLimit = 12 * 60_000;

export class Bridge {
	#host!: Host;
	#sessions!: Sessions;
	#cards!: Cards;
	#calls!: Calls;
	/** The switch of the host's own inference; undefined where the host lacks what it takes. */
	#inference: Inference | undefined;
	#operator!: Operator;
	#sidecar!: Sidecar;
	/** The extension API of the last factory run, for the host's tools without a main session. */
	#api!: ExtensionAPI;
	#mode = "unknown";
	#cwd = process.cwd();
	/** What the last sidecar left for its successor (S5). */
	#memory: unknown = null;
	/** Main sessions that the sidecar of this connection was told of, with its answers. */
	#told = new Map<Session, Promise<unknown>>();
	#hasUI = new WeakMap<Session, boolean>();
	#toolNames = "";
	/** Cards of the bridge's own tools that are open. */
	#ownCards = new Set<string>();
	#main: Session | undefined;

	constructor(private readonly folder: string) {}

	/** Ties one instance of the extension API to the bridge: of the process, of a subagent, of an ACP session. */
	attach(api: ExtensionAPI, host: Host): void {
		this.#api = api;
		if (!this.#host) this.#build(host);
		registerOffline(api, host);
		this.#operator.register(api, (args, sessionId) => this.#command(args, sessionId));
		api.on("session_start", (_event, ctx) => this.#sessionStart(api, ctx));
		api.on("session_shutdown", (_event, ctx) => this.#sessionShutdown(ctx));
		api.on("before_agent_start", () => this.#inference?.assert());
		api.on("session_switch", () => this.#inference?.assert()); // a resumed session brings its own model row
		api.on("agent_end", (_event, ctx) => this.#cards.turnEnded(this.#sessions.of(ctx)));
		api.on("tool_approval_requested", event => this.#state(event.toolCallId, p.CallState.awaitingApproval));
		api.on("tool_approval_resolved", event => this.#state(event.toolCallId, p.CallState.running));
	}

	#build(host: Host): void {
		this.#host = host;
		this.#sessions = new Sessions(host.registry);
		this.#cards = new Cards(host);
		this.#operator = new Operator(this.#sessions, () => host.logger);
		this.#calls = new Calls(
			host,
			this.#sessions,
			this.#cards,
			{
				state: (callId, state) => this.#note(p.ToSidecar.toolState, { callId, state }),
				progress: (callId, content) => this.#note(p.ToSidecar.toolProgress, { callId, content }),
			},
			() => this.#api.getAllTools(),
		);
		const lacks = Inference.lacks(host);
		if (lacks.length === 0) {
			this.#inference = new Inference(
				host,
				this.#sessions,
				() => (this.#memory as p.Memory | null)?.port ?? 0,
				denied => this.#note(p.ToSidecar.llmDenied, { denied }),
			);
		}
		host.missing.push(...lacks);
		this.#sidecar = new Sidecar({
			binary: binaryFor(this.folder),
			logger: () => host.logger,
			hello: () => this.#hello(),
			handle: (method, params) => this.#handle(method, params),
			up: (channel, hello) => this.#up(channel, hello),
			down: () => this.#down(),
			givenUp: reason => this.#operator.notice({ level: "error", text: `a2mcp is not running: ${reason}` }),
		});
		this.#sessions.onChange(() => this.#mainsChanged());
		if (host.missing.length > 0) host.logger.warn("a2mcp: this host lacks something", { missing: host.missing });
	}

	#note(method: string, params: unknown): void {
		this.#sidecar.channel?.notify(method, params);
	}

	#state(callId: string, state: string): void {
		this.#calls.asking(callId, state === p.CallState.awaitingApproval);
		if (this.#calls.has(callId)) this.#note(p.ToSidecar.toolState, { callId, state });
	}

	#hello(): p.Hello {
		return {
			protocol: p.protocolVersion,
			host: { name: "omp", version: this.#host.version, mode: this.#mode, pid: process.pid },
			agentDir: this.#host.agentDir,
			home: process.env.HOME ?? process.env.USERPROFILE ?? "",
			cwd: this.#cwd,
			features: this.#features(),
			memory: this.#memory,
		};
	}

	#features(): string[] {
		const features: string[] = [
			p.Feature.cancel,
			p.Feature.toolState,
			p.Feature.progress,
			p.Feature.exclusive,
			p.Feature.toolsChanged,
			p.Feature.remember,
		];
		if (Cards.able(this.#sessions.main())) features.push(p.Feature.cards);
		if (this.#inference) features.push(p.Feature.llm);
		return features;
	}

	#up(channel: Channel, hello: p.HelloResult): void {
		this.#operator.offer(hello.commands);
		this.#told.clear();
		for (const session of this.#sessions.mains()) this.#tell(channel, session).catch(() => {});
	}

	#down(): void {
		this.#told.clear();
		this.#operator.offer([]);
		this.#operator.status("");
		this.#calls.abandon();
		for (const id of this.#ownCards) this.#cards.end(id, { content: [{ type: "text", text: "the sidecar ended" }], isError: true });
		this.#ownCards.clear();
	}

	/** Tells the sidecar of a main session, once on each connection. */
	#tell(channel: Channel, session: Session): Promise<unknown> {
		let answer = this.#told.get(session);
		if (!answer) {
			const params: p.SessionStart = {
				sessionId: session.sessionManager.getSessionId(),
				isMain: true,
				hasUI: this.#hasUI.get(session) ?? true,
				cwd: session.sessionManager.getCwd(),
				mains: this.#sessions.mains().length,
			};
			answer = channel.request(p.ToSidecar.sessionStart, params, startLimit);
			this.#told.set(session, answer);
		}
		return answer;
	}

	async #sessionStart(api: ExtensionAPI, ctx: ExtensionContext): Promise<void> {
		this.#inference?.assert(); // before anything waits (D8)
		this.#operator.began(ctx);
		const session = this.#sessions.of(ctx);
		if (!session) {
			this.#sidecar.channel
				?.request(p.ToSidecar.sessionStart, this.#startOf(ctx), startLimit)
				.catch(error => this.#host.logger.info("a2mcp: session_start", { error: String(error) }));
			return;
		}
		this.#hasUI.set(session, ctx.hasUI);
		this.#main ??= session;
		if (this.#mode === "unknown") {
			this.#mode = modeOf(ctx, session, this.#host);
			this.#cwd = ctx.cwd;
		}
		await this.#settleModel(api, ctx);
		this.#sidecar.ensure();
		await this.#sidecar.settled(startLimit);
		const channel = this.#sidecar.channel;
		if (!channel) return; // it goes on in the background, or was given up and said so
		try {
			await this.#tell(channel, session);
		} catch (error) {
			this.#host.logger.warn("a2mcp: session_start", { error: String(error) });
		}
	}

	async #settleModel(api: ExtensionAPI, ctx: ExtensionContext): Promise<void> {
		try {
			const notice = await settleModel(api, ctx);
			// A warning: of two plain notices in a row the TUI keeps the second alone.
			if (notice !== undefined) this.#operator.notice({ level: "warning", text: notice });
		} catch (error) {
			this.#host.logger.warn("a2mcp: the placeholder model", { error: String(error) });
		}
		this.#inference?.assert();
	}

	#startOf(ctx: ExtensionContext): p.SessionStart {
		return { sessionId: idOf(ctx), isMain: false, hasUI: ctx.hasUI, cwd: ctx.cwd, mains: this.#sessions.mains().length };
	}

	async #sessionShutdown(ctx: ExtensionContext): Promise<void> {
		this.#operator.ended(ctx);
		const session = this.#sessions.of(ctx);
		if (session) {
			this.#sessions.ends(session);
			this.#told.delete(session);
		}
		const params: p.SessionShutdown = { sessionId: idOf(ctx), isMain: session !== undefined, mains: this.#sessions.mains().length };
		this.#mainsChanged();
		try {
			await this.#sidecar.channel?.request(p.ToSidecar.sessionShutdown, params, shutdownLimit);
		} catch (error) {
			this.#host.logger.info("a2mcp: session_shutdown", { error: String(error) });
		}
	}

	/** Main is the live one that started first; when it ends, another may take its place (P2). */
	#mainsChanged(): void {
		const mains = this.#sessions.mains();
		this.#note(p.ToSidecar.mainsChanged, { mains: mains.length });
		const main = mains[0];
		if (main && this.#main && main !== this.#main && !mains.includes(this.#main)) {
			this.#operator.notice({
				level: "info",
				text: `a2mcp: the session that tools ran in has ended; they run in ${main.sessionManager.getCwd()} now`,
			});
		}
		if (!this.#main || !mains.includes(this.#main)) this.#main = main;
	}

	#handle(method: string, params: unknown): unknown {
		switch (method) {
			case p.ToHost.hostState:
				return this.#hostState();
			case p.ToHost.toolsList:
				return this.#calls.list();
			case p.ToHost.toolsCall:
				return this.#calls.call((params ?? {}) as { callId?: unknown });
			case p.ToHost.toolsCancel:
				return this.#calls.cancel((params as p.CallRef).callId);
			case p.ToHost.llmSet:
				return this.#llmSet(params as p.LLMSet);
			case p.ToHost.card:
				return this.#card(params as OwnCard);
			case p.ToHost.notify:
				return this.#operator.notice(params as p.Message);
			case p.ToHost.status:
				return this.#operator.status((params as p.Status).text);
			case p.ToHost.remember:
				this.#memory = (params as p.Remember).memory;
				return undefined;
			default:
				throw new RpcError(p.ErrorCode.methodNotFound, `method not found: ${method}`);
		}
	}

	#hostState(): p.HostState {
		const names = this.#calls.names();
		if (names !== this.#toolNames) {
			this.#toolNames = names;
			this.#note(p.ToSidecar.toolsChanged, {});
		}
		return { mains: this.#sessions.mains().length, llm: this.#inference?.state ?? noSwitch };
	}

	#llmSet(params: p.LLMSet): p.LLMResult {
		if (!this.#inference) throw new RpcError(p.ErrorCode.methodNotFound, `this host lacks ${this.#host.missing.join(", ")}`);
		try {
			return this.#inference.set(params.deny === true);
		} catch (error) {
			throw new RpcError(p.ErrorCode.internal, text(error));
		}
	}

	/** A call of one of the bridge's own tools, which the host did not run but shows. */
	#card(card: OwnCard): void {
		const main = this.#sessions.main();
		if (card.phase === "start" && main) {
			this.#ownCards.add(card.callId);
			this.#cards.start(main, card.callId, card.name, card.arguments);
		} else {
			this.#ownCards.delete(card.callId);
			this.#cards.end(card.callId, { content: card.content ?? [], isError: card.isError });
		}
	}

	/** Carries out what the operator typed after /a2mcp. */
	async #command(args: string, sessionId: string): Promise<p.Message> {
		const channel = this.#sidecar.channel;
		if (!channel) return this.#withoutSidecar(args.trim());
		try {
			const params: p.OperatorCommand = { name: "a2mcp", args, sessionId };
			return await channel.request<p.Message>(p.ToSidecar.command, params, commandLimit);
		} catch (error) {
			return { level: "error", text: `a2mcp: ${text(error)}` };
		}
	}

	/** What there is to say without a sidecar (F3). */
	async #withoutSidecar(word: string): Promise<p.Message> {
		if (word === "start") {
			this.#sidecar.retry();
			await this.#sidecar.settled(startLimit);
			if (this.#sidecar.channel) return { level: "info", text: "a2mcp runs again" };
		}
		if (word === "allow") return this.#allow();
		const why = this.#sidecar.stopped ?? "the sidecar is starting";
		return {
			level: "error",
			text: `a2mcp is not running: ${why}. \`/a2mcp start\` tries again, \`/a2mcp allow\` lets this host use its models`,
		};
	}

	/** Gives inference back without a sidecar: the operator has the last word. */
	#allow(): p.Message {
		try {
			this.#inference?.set(false);
			return { level: "info", text: "this host uses its models again" };
		} catch (error) {
			return { level: "error", text: `a2mcp: ${text(error)}` };
		}
	}
}

const noSwitch: p.LLMState = { wanted: false, armed: false, degraded: false, denied: 0 };

interface OwnCard {
	callId: string;
	name: string;
	phase: string;
	arguments?: unknown;
	content?: unknown[];
	isError?: boolean;
}

/** ACP looks like rpc to an extension; its sessions are told by their ids in the registry. */
function modeOf(ctx: ExtensionContext, session: Session, host: Host): string {
	const ref = host.registry?.list().find(r => r.session === session);
	return ref?.id.startsWith("acp:") ? "acp" : ctx.mode;
}
