package hostrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/a2mcp/a2mcp/proto"
)

// Host is the agent program at the other end of a sidecar's connection. A method
// that asks returns when the host has answered, when ctx ends or when the
// connection does (ErrClosed); one that tells returns at once.
type Host struct{ Conn *Conn }

// State asks for the live main sessions and the state of the host's own model
// requests.
func (h Host) State(ctx context.Context) (proto.HostState, error) {
	var state proto.HostState
	raw, err := h.Conn.Call(ctx, proto.SidecarHostState)
	if err == nil {
		err = json.Unmarshal(raw, &state)
	}
	return state, err
}

// Tools asks for the registry of the main session (M3). The values of the tools
// are slices of one buffer.
func (h Host) Tools(ctx context.Context) ([]proto.Tool, error) {
	raw, err := h.Conn.Call(ctx, proto.SidecarToolsList)
	if err != nil {
		return nil, err
	}
	list := proto.Member(raw, "tools")
	if !proto.IsArray(list) {
		return nil, errors.New("the host answered tools/list without an array of tools")
	}
	var tools []proto.Tool
	for entry := range proto.Elements(list) {
		var tool proto.Tool
		for key, value := range proto.Members(entry) {
			switch string(key) {
			case "name":
				tool.Name, _ = proto.Text(value)
				tool.RawName = value
			case "description":
				tool.Description = value
			case "inputSchema":
				tool.InputSchema = value
			}
		}
		if tool.RawName == nil || tool.RawName[0] != '"' {
			return nil, fmt.Errorf("the host listed a tool without a name as number %d", len(tools)+1)
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// CallTool runs a tool. arguments is raw JSON, nil crosses as {} (M7). The
// content of the outcome is as the host wrote it.
func (h Host) CallTool(ctx context.Context, callID, name string, arguments []byte) (proto.Outcome, error) {
	if arguments == nil {
		arguments = []byte(`{}`)
	}
	head := append([]byte(`{"callId":`), proto.Encode(callID)...)
	head = append(append(head, `,"name":`...), proto.Encode(name)...)
	head = append(head, `,"arguments":`...)
	raw, err := h.Conn.Call(ctx, proto.SidecarToolsCall, head, arguments, []byte(`}`))
	if err != nil {
		return proto.Outcome{}, err
	}
	var out proto.Outcome
	for key, value := range proto.Members(raw) {
		switch string(key) {
		case "outcome":
			out.Outcome, _ = proto.Text(value)
		case "content":
			out.Content = value
		case "isError":
			out.IsError = string(value) == "true"
		case "background":
			out.Background = string(value) == "true"
		}
	}
	return out, nil
}

// CancelTool asks the host to abort a call; the call itself then ends (M11).
func (h Host) CancelTool(callID string) error {
	return h.tell(proto.SidecarToolsCancel, proto.CallRef{CallID: callID})
}

// SetLLM asks the host to deny or allow its own model requests (D3). An *Error says
// why nothing was changed.
func (h Host) SetLLM(ctx context.Context, set proto.LLMSet) (proto.LLMResult, error) {
	var res proto.LLMResult
	raw, err := h.Conn.Call(ctx, proto.SidecarLLMSet, proto.Encode(set))
	if err == nil {
		err = json.Unmarshal(raw, &res)
	}
	return res, err
}

// CardStart draws the card of one of the bridge's own tools (M9).
func (h Host) CardStart(callID, name string, arguments []byte) error {
	if arguments == nil {
		arguments = []byte(`{}`)
	}
	return h.card(callID, name, "start", []byte(`,"arguments":`), arguments)
}

// CardEnd completes a card.
func (h Host) CardEnd(callID, name string, content []byte, isError bool) error {
	flag := []byte(`,"isError":false`)
	if isError {
		flag = []byte(`,"isError":true`)
	}
	return h.card(callID, name, "end", []byte(`,"content":`), content, flag)
}

func (h Host) card(callID, name, phase string, rest ...[]byte) error {
	head := append([]byte(`{"callId":`), proto.Encode(callID)...)
	head = append(append(head, `,"name":`...), proto.Encode(name)...)
	head = append(append(head, `,"phase":`...), proto.Encode(phase)...)
	pieces := append([][]byte{head}, rest...)
	_, err := h.Conn.Notify(proto.SidecarCard, append(pieces, []byte(`}`))...)
	return err
}

// Notify shows the operator a notice.
func (h Host) Notify(level, text string) error {
	return h.tell(proto.SidecarNotify, proto.Message{Level: level, Text: text})
}

// Status keeps a short line on the operator's screen.
func (h Host) Status(text string) error {
	return h.tell(proto.SidecarStatus, proto.Status{Text: text})
}

// Remember leaves memory with the host. The channel is closed once the message
// is in the pipe, where a crash of the sidecar can no longer lose it (S5).
func (h Host) Remember(memory proto.Memory) (written <-chan struct{}, err error) {
	return h.Conn.Notify(proto.SidecarRemember, proto.Encode(proto.Remember{Memory: memory}))
}

func (h Host) tell(method string, params any) error {
	_, err := h.Conn.Notify(method, proto.Encode(params))
	return err
}
