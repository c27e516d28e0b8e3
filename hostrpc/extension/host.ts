/**
 * What the bridge uses of omp beyond the public extension API. All of it is internal to the host and
 * may change, so each piece is looked for when the extension loads; what is missing is named, and
 * costs what needs it.
 */
import type { ExtensionAPI, ToolInfo } from "@oh-my-pi/pi-coding-agent";
import type * as AI from "@oh-my-pi/pi-ai";

type Namespace = ExtensionAPI["pi"];
export type Registry = ReturnType<Namespace["AgentRegistry"]["global"]>;
export type Session = NonNullable<ReturnType<Registry["list"]>[number]["session"]>;
export type Tool = NonNullable<ReturnType<Session["getToolByName"]>>;
export type Logger = Pick<ExtensionAPI["logger"], "debug" | "info" | "warn" | "error">;

/** The pieces of the host, as they were found. */
export interface Host {
	version: string;
	agentDir: string;
	logger: Logger;
	/** Every agent of this process; undefined where the host has no such registry. */
	registry: Registry | undefined;
	/** JSON Schema of a tool's parameters. */
	wireSchema(tool: Tool | ToolInfo): unknown;
	/** The arguments as the tool is to get them, or an error that tells what is wrong with them. */
	validate(tool: Tool, call: { id: string; name: string; arguments: unknown }): unknown;
	/** The host's model library, for everything about inference. */
	ai: typeof AI | undefined;
	/** The host's own package, for the settings of the process. */
	pi: Namespace;
	/** Names of what was looked for and not found. */
	missing: string[];
}

export async function detectHost(api: ExtensionAPI): Promise<Host> {
	const missing: string[] = [];
	const need = <T>(name: string, piece: T | undefined): T | undefined => {
		if (piece === undefined) missing.push(name);
		return piece;
	};
	let ai: typeof AI | undefined;
	try {
		ai = await import("@oh-my-pi/pi-ai");
	} catch {
		missing.push("pi-ai");
	}
	const schema = need("toolWireSchema", ai?.toolWireSchema);
	const validate = need("validateToolArguments", ai?.validateToolArguments);
	return {
		version: api.pi.VERSION ?? "unknown",
		agentDir: api.pi.getAgentDir(),
		logger: api.logger,
		registry: need("AgentRegistry", api.pi.AgentRegistry?.global()),
		wireSchema: tool => schema?.(tool as Tool) ?? { type: "object" },
		validate: (tool, call) =>
			validate ? validate(tool, { type: "toolCall", ...call, arguments: call.arguments as Record<string, unknown> }) : call.arguments,
		ai,
		pi: api.pi,
		missing,
	};
}
