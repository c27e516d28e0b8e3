// Package clients holds tests only: real MCP clients and the official
// conformance suites against `a2mcp demo`. It is a module of its own, so that
// the client libraries stay out of the product's go.mod. run.sh installs what
// is not Go and starts the tests.
package clients
