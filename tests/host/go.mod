module github.com/a2mcp/a2mcp/tests/host

go 1.26.0
