// Package proto holds what both edges of the bridge speak: the names, shapes
// and error codes of MCP revision 2025-11-25 (towards callers) and of the stdio
// protocol 1 (towards the host), and a scanner that walks JSON without decoding
// it. The behaviour itself is written down beside this file: CONTRACT.md for
// everything a caller, an operator or a host can see, HOST.md for the stdio
// channel.
//
// Values that belong to somebody else (arguments, schemas, contents, ids) are
// carried as raw bytes from socket to pipe and back. Decoding and encoding them
// again would change numbers, key order and escapes, and would copy bodies of
// 100 MiB; see [Members].
package proto

// JSONRPC is the only value of the member "jsonrpc" (JSON-RPC 2.0, section 4).
const JSONRPC = "2.0"

// Error codes of JSON-RPC 2.0 and the two this bridge adds. The range -32020 to
// -32099 stays free: newer MCP clients read those codes as a statement about
// the protocol revision (H11).
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
	CodeServer         = -32000 // what the HTTP front refuses before a method runs (H8)
	CodeProtocolSkew   = -32001 // hello with a protocol number the sidecar does not speak
)
