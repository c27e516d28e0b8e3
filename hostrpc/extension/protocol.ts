/** Made from package proto by protocol_test.go; go test ./hostrpc/extension -update writes it. */

export const protocolVersion = 1;

export const ToSidecar = {
	hello: "hello",
	sessionStart: "session_start",
	sessionShutdown: "session_shutdown",
	mainsChanged: "mains_changed",
	command: "command",
	toolState: "tool_state",
	toolProgress: "tool_progress",
	toolsChanged: "tools_changed",
	llmDenied: "llm_denied",
} as const;

export const ToHost = {
	hostState: "host_state",
	toolsList: "tools/list",
	toolsCall: "tools/call",
	toolsCancel: "tools/cancel",
	llmSet: "llm/set",
	card: "card",
	notify: "notify",
	status: "status",
	remember: "remember",
} as const;

export const Feature = {
	cancel: "cancel",
	toolState: "tool_state",
	progress: "progress",
	exclusive: "exclusive",
	cards: "cards",
	llm: "llm",
	toolsChanged: "tools_changed",
	remember: "remember",
} as const;

export const CallState = {
	running: "running",
	awaitingApproval: "awaiting_approval",
	queued: "queued",
} as const;

export const Outcome = {
	done: "done",
	notExposed: "not_exposed",
	noMain: "no_main",
	cancelled: "cancelled",
	invalid: "invalid",
} as const;

export const ErrorCode = { methodNotFound: -32601, invalidParams: -32602, internal: -32603, protocolSkew: -32001 } as const;

export interface HostInfo {
	name: string;
	version: string;
	mode: string;
	pid: number;
}

export interface Hello {
	protocol: number;
	host: HostInfo;
	agentDir: string;
	home: string;
	cwd: string;
	features: string[];
	memory: unknown;
}

export interface HelloResult {
	protocol: number;
	version: string;
	commands: Command[];
	hostLlm: string;
}

export interface Command {
	name: string;
	description: string;
	words: string[];
}

export interface SessionStart {
	sessionId: string;
	isMain: boolean;
	hasUI: boolean;
	cwd: string;
	mains: number;
}

export interface SessionStartResult {
	url: string | null;
	reason?: string;
}

export interface SessionShutdown {
	sessionId: string;
	isMain: boolean;
	mains: number;
}

export interface SessionShutdownResult {
	released: boolean;
}

export interface MainsChanged {
	mains: number;
}

export interface OperatorCommand {
	name: string;
	args: string;
	sessionId: string;
}

export interface Message {
	level: string;
	text: string;
}

export interface ToolState {
	callId: string;
	state: string;
}

export interface Denied {
	denied: number;
}

export interface HostState {
	mains: number;
	llm: LLMState;
}

export interface LLMState {
	wanted: boolean;
	armed: boolean;
	degraded: boolean;
	denied: number;
}

export interface LLMSet {
	deny: boolean;
	atStart: boolean;
}

export interface LLMResult {
	armed: boolean;
	degraded: boolean;
	denied: number;
	shadowed: string[];
	tripwireKeys: number;
	modelPushed: string | null;
	missing: string[];
}

export interface CallRef {
	callId: string;
}

export interface Status {
	text: string;
}

export interface Memory {
	port: number;
	sessions: string[];
	retired?: string[];
}

export interface Remember {
	memory: Memory;
}
