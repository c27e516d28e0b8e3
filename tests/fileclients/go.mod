module github.com/a2mcp/a2mcp/tests/fileclients

go 1.26.0
