/**
 * The a2mcp bridge inside omp.
 *
 * This is the host's half of the stdio protocol (proto/HOST.md) and mechanism only: it starts the
 * sidecar, tells it of sessions, runs tools for it and shows what it says. Everything that is a
 * decision is made in the sidecar.
 *
 * omp evaluates this module again for each ACP session, and calls the factory again for each
 * subagent, so all state is one Bridge on globalThis and the factory only ties an instance of the
 * extension API to it. An exception that leaves a promise here ends the whole host: every promise
 * that nobody waits for has a catch, and nothing is written to the terminal.
 */
import type { ExtensionAPI } from "@oh-my-pi/pi-coding-agent";
import { Bridge } from "./bridge";
import { detectHost } from "./host";

const key = Symbol.for("a2mcp.bridge.v1");

export default async function a2mcp(pi: ExtensionAPI): Promise<void> {
	const shared = globalThis as { [key]?: Bridge };
	const bridge = (shared[key] ??= new Bridge(import.meta.dir));
	bridge.attach(pi, await detectHost(pi));
}
