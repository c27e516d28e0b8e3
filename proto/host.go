package proto

import "encoding/json"

// HostProtocol is the version of the stdio protocol; see HOST.md.
const HostProtocol = 1

// MaxLine is the longest line, in bytes without its newline, that either side
// of the stdio channel accepts.
const MaxLine = 256 << 20

// Methods and notifications from the host to the sidecar.
const (
	HostHello           = "hello"
	HostSessionStart    = "session_start"
	HostSessionShutdown = "session_shutdown"
	HostMainsChanged    = "mains_changed"
	HostCommand         = "command"
	HostToolState       = "tool_state"
	HostToolProgress    = "tool_progress"
	HostToolsChanged    = "tools_changed"
	HostLLMDenied       = "llm_denied"
)

// Methods and notifications from the sidecar to the host.
const (
	SidecarHostState   = "host_state"
	SidecarToolsList   = "tools/list"
	SidecarToolsCall   = "tools/call"
	SidecarToolsCancel = "tools/cancel"
	SidecarLLMSet      = "llm/set"
	SidecarCard        = "card"
	SidecarNotify      = "notify"
	SidecarStatus      = "status"
	SidecarRemember    = "remember"
)

// Features a host may announce in hello. One that is missing is named in the
// status and costs what needs it, nothing else.
const (
	FeatureCancel       = "cancel"
	FeatureToolState    = "tool_state"
	FeatureProgress     = "progress"
	FeatureExclusive    = "exclusive"
	FeatureCards        = "cards"
	FeatureLLM          = "llm"
	FeatureToolsChanged = "tools_changed"
	FeatureRemember     = "remember"
)

// HostInfo says who is at the other end of the channel.
type HostInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Mode    string `json:"mode"` // tui, rpc, print, acp; free text
	PID     int    `json:"pid"`  // watched: the sidecar ends when it is gone (P6)
}

// Hello is the first message of the host.
type Hello struct {
	Protocol int             `json:"protocol"`
	Host     HostInfo        `json:"host"`
	AgentDir string          `json:"agentDir"` // absolute; config and log live here
	Home     string          `json:"home"`     // what ~ means (X1)
	Cwd      string          `json:"cwd"`      // what relative paths start from (X1)
	Features []string        `json:"features"`
	Memory   json.RawMessage `json:"memory"` // the last Remember, or null
}

// HelloResult answers Hello.
type HelloResult struct {
	Protocol int       `json:"protocol"`
	Version  string    `json:"version"`
	Commands []Command `json:"commands"`
	HostLLM  string    `json:"hostLlm"` // allow or deny: the config's host_llm
}

// Command is an operator command for the host to register.
type Command struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Words       []string `json:"words"` // completions of the rest of the line
}

// SessionStart reports that a session of the host began.
type SessionStart struct {
	SessionID string `json:"sessionId"`
	IsMain    bool   `json:"isMain"`
	HasUI     bool   `json:"hasUI"`
	Cwd       string `json:"cwd"`
	Mains     int    `json:"mains"` // live main sessions now
}

// SessionStartResult says where the bridge listens, or why it does not.
type SessionStartResult struct {
	URL    *string `json:"url"`
	Reason string  `json:"reason,omitempty"`
}

// SessionShutdown reports that a session of the host is ending.
type SessionShutdown struct {
	SessionID string `json:"sessionId"`
	IsMain    bool   `json:"isMain"`
	Mains     int    `json:"mains"` // live main sessions besides this one
}

// SessionShutdownResult says whether the port was given up.
type SessionShutdownResult struct {
	Released bool `json:"released"`
}

// MainsChanged reports the number of live main sessions.
type MainsChanged struct {
	Mains int `json:"mains"`
}

// OperatorCommand is a command the operator typed.
type OperatorCommand struct {
	Name      string `json:"name"`
	Args      string `json:"args"` // the rest of the line
	SessionID string `json:"sessionId"`
}

// Message is what the host shows its operator: the answer to a command, or a
// notice.
type Message struct {
	Level string `json:"level"` // info, warning or error
	Text  string `json:"text"`
}

// Levels of Message.
const (
	LevelInfo    = "info"
	LevelWarning = "warning"
	LevelError   = "error"
)

// ToolState reports what a call is doing in the host.
type ToolState struct {
	CallID string `json:"callId"`
	State  string `json:"state"`
}

// States of a call in the host. A call is running until something else is said.
const (
	StateRunning  = "running"
	StateApproval = "awaiting_approval"
	StateQueued   = "queued" // behind another exclusive call (M12)
)

// Denied reports how many model requests the host has refused so far.
type Denied struct {
	Denied int64 `json:"denied"`
}

// HostState answers host_state, the source of every decision about the port and
// the health check in one.
type HostState struct {
	Mains int      `json:"mains"` // live ones; one that has begun its shutdown no longer counts
	LLM   LLMState `json:"llm"`
}

// LLMState is the state of the host's own model requests.
type LLMState struct {
	Wanted   bool  `json:"wanted"` // what the host brings about at each session_start (D8)
	Armed    bool  `json:"armed"`
	Degraded bool  `json:"degraded"`
	Denied   int64 `json:"denied"`
}

// LLMSet asks the host to deny its own model requests, or to allow them.
type LLMSet struct {
	Deny    bool `json:"deny"`
	AtStart bool `json:"atStart"` // of a session, not of a caller: what is wished already
}

// LLMResult says what LLMSet came to.
type LLMResult struct {
	Armed        bool     `json:"armed"`
	Degraded     bool     `json:"degraded"` // D10
	Denied       int64    `json:"denied"`
	Shadowed     []string `json:"shadowed"` // providers whose ways that are not fetch are closed
	TripwireKeys int      `json:"tripwireKeys"`
	ModelPushed  *string  `json:"modelPushed"` // the model row that the deny copy stands for
	Missing      []string `json:"missing"`     // what a restore did not bring back, or why it is degraded
}

// CallRef names a call, for tools/cancel.
type CallRef struct {
	CallID string `json:"callId"`
}

// Status is one short line for the host to keep on the screen.
type Status struct {
	Text string `json:"text"`
}

// Memory is what a sidecar leaves with the host, so that its successor knows
// the port and the sessions it had (S5).
type Memory struct {
	Port     int      `json:"port"`
	Sessions []string `json:"sessions"` // most recently seen first, at most 64
	// Retired are the SHA-256, in hexadecimal, of tokens that were rotated away (F3).
	Retired []string `json:"retired,omitempty"`
}

// Remember carries the Memory to the host.
type Remember struct {
	Memory Memory `json:"memory"`
}

// Outcomes of tools/call on the host.
const (
	OutcomeDone       = "done"
	OutcomeNotExposed = "not_exposed" // no such name in the live registry (M5)
	OutcomeNoMain     = "no_main"     // no live main session (M10)
	OutcomeCancelled  = "cancelled"   // after tools/cancel (M11)
	OutcomeInvalid    = "invalid"     // the arguments are not what the tool takes; the content says why (M7)
)

// Outcome is how a call ended in the host.
type Outcome struct {
	Outcome string
	Content []byte // a raw JSON array of content blocks; nil if the host sent none
	IsError bool
	// Background says that the host goes on with it and wakes its model with the
	// result (M14).
	Background bool
}
