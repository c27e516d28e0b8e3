/**
 * A model for hosts that have none, so that they start and serve (O1). A prompt to it ends at once
 * with a text that says what to do.
 */
import type { Api } from "@oh-my-pi/pi-ai";
import type { ExtensionAPI, ExtensionContext } from "@oh-my-pi/pi-coding-agent";
import { refuse } from "./denial";
import type { Host } from "./host";

const provider = "a2mcp";
const id = "offline";
const advice =
	"a2mcp: this host has no model. Its tools work for MCP clients; to prompt it here, log in with /login or add a provider to models.yml";

/**
 * Registered while the extension loads: headless modes look for a model before any session is there.
 * The address is of a domain that never resolves (RFC 6761), and is not used.
 */
export function registerOffline(pi: ExtensionAPI, host: Host): void {
	try {
		pi.registerProvider(provider, {
			baseUrl: "http://a2mcp.invalid/v1",
			apiKey: "not-a-real-key",
			api: "a2mcp-offline" as Api,
			streamSimple: model => refuse(host, model, advice),
			models: [
				{
					id,
					name: "no model (a2mcp)",
					reasoning: false,
					input: ["text", "image"], // without image input, tools describe pictures rather than return them
					cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
					contextWindow: 100_000,
					maxTokens: 4_096,
				},
			],
		});
	} catch (error) {
		host.logger.warn("a2mcp: the placeholder model", { error: String(error) });
	}
}

/** Fills an empty slot, and gives the slot back to a real model; returns what to tell the operator. */
export async function settleModel(pi: ExtensionAPI, ctx: ExtensionContext): Promise<string | undefined> {
	const current = ctx.model;
	if (current && current.provider !== provider) return undefined;
	const models = ctx.models.list();
	const preferred = ctx.models.resolve("@default");
	const real = preferred && preferred.provider !== provider ? preferred : models.find(model => model.provider !== provider);
	if (real) {
		// A resumed session remembers the placeholder; an empty slot with real models is the operator's choice.
		if (current && (await pi.setModel(real))) return `a2mcp: this session had no model; it uses ${real.provider}/${real.id} now`;
		return undefined;
	}
	const placeholder = models.find(model => model.provider === provider && model.id === id);
	if (!current && (!placeholder || !(await pi.setModel(placeholder)))) return undefined;
	return "a2mcp: this host has no model, so a placeholder is selected; MCP clients can call its tools all the same";
}
