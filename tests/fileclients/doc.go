// Package fileclients holds tests only: programs that people move files with, against the file server
// of `a2mcp demo`. A program that is not there is skipped, or is a failure where
// A2MCP_REQUIRE_CLIENTS=1 says so; run.sh installs them and says so.
package fileclients
