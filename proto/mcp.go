package proto

// ProtocolVersion is the MCP revision that initialize always answers with (M1).
const ProtocolVersion = "2025-11-25"

// PublishedVersion reports whether v is a revision of MCP that had been
// published up to [ProtocolVersion] and may therefore stand in the header
// MCP-Protocol-Version (H8).
func PublishedVersion(v string) bool {
	switch v {
	case "2024-11-05", "2025-03-26", "2025-06-18", ProtocolVersion:
		return true
	}
	return false
}

// Methods of MCP that the bridge answers.
const (
	MethodInitialize  = "initialize"
	MethodPing        = "ping"
	MethodToolsList   = "tools/list"
	MethodToolsCall   = "tools/call"
	NotificationsRoot = "notifications/" // prefix of every notification (H7)
	MethodCancelled   = "notifications/cancelled"
)

// Names of the HTTP headers the transport defines. SessionHeader is written as
// it stands here, in lower case (H6).
const (
	SessionHeader = "mcp-session-id"
	VersionHeader = "MCP-Protocol-Version"
)

// Tool is one entry of tools/list. All three values are raw JSON exactly as the
// host sent them; Title-case decoding is for the name alone, which is needed to
// compare.
type Tool struct {
	Name        string
	RawName     []byte // a JSON string
	Description []byte // a JSON value, nil if the host sent none
	InputSchema []byte // a JSON value, nil if the host sent none
}

// ObjectSchema is listed in place of a schema whose root is not an object
// schema: a client that validates the list would drop all of it otherwise (M3).
const ObjectSchema = `{"type":"object"}`

// IsObjectSchema reports whether the root of a JSON Schema says "type":"object".
func IsObjectSchema(schema []byte) bool {
	for key, value := range Members(schema) {
		if string(key) == "type" {
			text, ok := Text(value)
			return ok && text == "object"
		}
	}
	return false
}

// TextContent is the content of a result that is one text (M4).
func TextContent(text string) []byte {
	content := append([]byte(`[{"type":"text","text":`), Encode(text)...)
	return append(content, `}]`...)
}
