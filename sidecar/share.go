package sidecar

import (
	"context"
	"path/filepath"
	"strconv"

	"github.com/a2mcp/a2mcp/files"
	"github.com/a2mcp/a2mcp/httpfront"
	"github.com/a2mcp/a2mcp/proto"
)

// newShare makes the share, which serves nothing yet (X1).
func (s *sidecar) newShare(hello proto.Hello) *files.Share {
	return files.New(files.Options{
		Audit: s.audit, Log: s.log, Home: hello.Home, Cwd: hello.Cwd,
		Required: func() bool { return s.config().Audit == "required" },
		Base:     s.base,
		Own:      s.ownFiles,
		Access:   func() files.Access { return accessOf(s.config().Xfer.Access) },
		MaxBody:  func() int64 { return s.config().MaxBody },
		Child:    s.startDufs,
	})
}

func accessOf(word string) files.Access {
	switch word {
	case "read-only":
		return files.ReadOnly
	case "off":
		return files.Off
	}
	return files.ReadWrite
}

// base is where the bridge is reached now.
func (s *sidecar) base() (local, public string) {
	local, _ = s.address()
	return local, s.tunnel.public()
}

// ownFiles are the files that do not exist through a share (X5).
func (s *sidecar) ownFiles() []string {
	own := []string{s.paths.config, s.paths.audit, filepath.Dir(s.paths.runFile), filepath.Join(s.paths.agentDir, "a2mcp.installs.json")}
	if s.paths.data != "" {
		own = append(own, s.paths.data)
	}
	for n := 1; n <= s.config().AuditKeep; n++ {
		own = append(own, s.paths.audit+"."+strconv.Itoa(n))
	}
	return own
}

// ownTools are xfer_*, with a card on the host's screen like any other call (M9).
func (s *sidecar) ownTools() []httpfront.Tool {
	var tools []httpfront.Tool
	for _, tool := range s.share.Tools() {
		tools = append(tools, httpfront.Tool{
			Name: tool.Name, Description: tool.Description, InputSchema: tool.InputSchema,
			Run: func(ctx context.Context, callID, sid string, arguments []byte) (string, bool) {
				_ = s.host.CardStart(callID, tool.Name, arguments) // a card never decides a result
				text, isError := tool.Run(ctx, sid, arguments)
				text = s.secrets.RedactString(text) // A5: a path may hold it
				_ = s.host.CardEnd(callID, tool.Name, proto.TextContent(text), isError)
				return text, isError
			},
		})
	}
	return tools
}
