package clients

import (
	"context"
	"encoding/base64"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgotypes "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestGoSDK: the official Go SDK connects, lists, calls, gets an image and a
// tool error, and cancels (M1, M3, M4, M11). It probes for the stateless
// revision first and falls back (H11). It does not shake hands again after 404.
func TestGoSDK(t *testing.T) {
	b := startBridge(t)
	session := connectSDK(t, &mcp.StreamableClientTransport{Endpoint: b.URL, HTTPClient: b.client()})
	if v := session.InitializeResult().ProtocolVersion; v != "2025-11-25" {
		t.Errorf("protocol version %q", v)
	}
	exerciseSDK(t, b, session)

	b.forget(t)
	_, err := session.ListTools(t.Context(), nil)
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), "session") && !strings.Contains(err.Error(), "404") && !strings.Contains(err.Error(), "Not Found") {
		t.Errorf("an unknown session: got %v, want an error that says so", err)
	}
}

func connectSDK(t *testing.T, tr mcp.Transport) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "a2mcp-test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), tr, nil)
	if err != nil {
		t.Fatal("connect: ", err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func exerciseSDK(t *testing.T, b *bridge, session *mcp.ClientSession) {
	t.Helper()
	ctx := t.Context()
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		t.Fatal("list: ", err)
	}
	names := map[string]bool{}
	for _, tool := range tools.Tools {
		names[tool.Name] = true
	}
	for _, want := range []string{"read", "bash", "echo", "test_simple_text"} {
		if !names[want] {
			t.Errorf("tools/list lacks %s", want)
		}
	}

	res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "h<i>&\u2028"}})
	if err != nil {
		t.Fatal("call: ", err)
	}
	if text, ok := res.Content[0].(*mcp.TextContent); !ok || text.Text != "h<i>&\u2028" || res.IsError {
		t.Errorf("echo: %+v", res)
	}

	res, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "test_image_content"})
	if err != nil {
		t.Fatal("image: ", err)
	}
	if img, ok := res.Content[0].(*mcp.ImageContent); !ok || len(img.Data) == 0 || img.MIMEType != "image/png" {
		t.Errorf("image: %+v", res.Content[0])
	}

	res, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "bash", Arguments: map[string]any{"command": "exit 3"}})
	if err != nil || !res.IsError {
		t.Errorf("exit 3: %+v, %v; want isError", res, err)
	}

	cancelled, cancel := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() {
		_, err := session.CallTool(cancelled, &mcp.CallToolParams{Name: "never"})
		failed <- err
	}()
	b.waitStart(t, "never")
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled call: %v", err)
	}
	if r := b.waitDone(t, "never", 3*time.Second); r.IsError == nil || !*r.IsError {
		t.Errorf("the record of the cancelled call: %+v", r)
	}
}

// TestMCPGo: mark3labs/mcp-go, likewise. It drops the connection instead of
// cancelling, and a 404 is final for it (M11, H11).
func TestMCPGo(t *testing.T) {
	b := startBridge(t)
	ctx := t.Context()
	client, err := mcpgo.NewStreamableHttpClient(b.URL, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + b.Token}))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Start(ctx); err != nil {
		t.Fatal(err)
	}
	init := mcpgotypes.InitializeRequest{}
	init.Params.ClientInfo = mcpgotypes.Implementation{Name: "a2mcp-test", Version: "1"}
	init.Params.ProtocolVersion = mcpgotypes.LATEST_PROTOCOL_VERSION
	if _, err := client.Initialize(ctx, init); err != nil {
		t.Fatal("initialize: ", err)
	}
	tools, err := client.ListTools(ctx, mcpgotypes.ListToolsRequest{})
	if err != nil || len(tools.Tools) < 10 {
		t.Fatalf("list: %d tools, %v", len(tools.Tools), err)
	}
	call := func(name string, args map[string]any) *mcpgotypes.CallToolResult {
		t.Helper()
		req := mcpgotypes.CallToolRequest{}
		req.Params.Name, req.Params.Arguments = name, args
		res, err := client.CallTool(ctx, req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return res
	}
	if res := call("echo", map[string]any{"text": "hello"}); res.IsError || res.Content[0].(mcpgotypes.TextContent).Text != "hello" {
		t.Errorf("echo: %+v", res)
	}
	if img, ok := call("test_image_content", nil).Content[0].(mcpgotypes.ImageContent); !ok {
		t.Error("image: no image block")
	} else if _, err := base64.StdEncoding.DecodeString(img.Data); err != nil {
		t.Errorf("image data: %v", err)
	}
	if res := call("test_error_handling", nil); !res.IsError {
		t.Errorf("tool error: %+v", res)
	}

	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	req := mcpgotypes.CallToolRequest{}
	req.Params.Name, req.Params.Arguments = "slow", map[string]any{"ms": 1000}
	if _, err := client.CallTool(short, req); err == nil {
		t.Error("a call that was given up returned")
	}
	if r := b.waitDone(t, "slow", 5*time.Second); r.IsError == nil || *r.IsError {
		t.Errorf("a dropped connection cancelled the call (M11): %+v", r)
	}

	b.forget(t)
	if _, err := client.ListTools(ctx, mcpgotypes.ListToolsRequest{}); !errors.Is(err, transport.ErrSessionTerminated) {
		t.Errorf("an unknown session: got %v, want ErrSessionTerminated", err)
	}
}

// TestMCPRemote: mcp-remote turns the bridge into a stdio server. It shakes hands
// again by itself after 404 (S3, S4).
func TestMCPRemote(t *testing.T) {
	b := startBridge(t)
	bin := filepath.Join(need(t, "A2MCP_NPM"), "mcp-remote", "dist", "proxy.js")
	cmd := node(t, bin, b.URL, "--allow-http", "--transport", "http-only", "--header", "Authorization:Bearer "+b.Token)
	cmd.Env = append(cmd.Env, "HOME="+t.TempDir(), "MCP_REMOTE_CONFIG_DIR="+t.TempDir())
	session := connectSDK(t, &mcp.CommandTransport{Command: cmd})
	exerciseSDK(t, b, session)

	b.forget(t)
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "again"}})
	if err != nil || res.Content[0].(*mcp.TextContent).Text != "again" {
		t.Errorf("after the session was forgotten: %+v, %v", res, err)
	}
}

// TestRealClientsLeavePairs: whatever clients do, records come in pairs (L1).
func TestRealClientsLeavePairs(t *testing.T) {
	b := startBridge(t)
	session := connectSDK(t, &mcp.StreamableClientTransport{Endpoint: b.URL, HTTPClient: b.client()})
	for range 20 {
		if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "x"}}); err != nil {
			t.Fatal(err)
		}
	}
	phases := map[string]string{}
	for _, r := range b.records(t) {
		phases[r.ID] += r.Phase + " "
	}
	if len(phases) != 20 {
		t.Errorf("%d calls recorded, want 20", len(phases))
	}
	for id, seen := range phases {
		if seen != "start done " {
			t.Errorf("%s: %s", id, seen)
		}
	}
}
