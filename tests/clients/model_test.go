package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// newScriptedModel is an Anthropic Messages API on loopback whose model asks for
// one tool, once that is offered, and then repeats what the tool said.
func newScriptedModel(t *testing.T, tool, arguments string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var request struct {
			Stream   bool
			Tools    []struct{ Name string }
			Messages []struct{ Content json.RawMessage }
		}
		if json.Unmarshal(body, &request) != nil || !strings.HasSuffix(r.URL.Path, "/messages") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"input_tokens":1}`)
			return
		}
		block, stop := map[string]any{"type": "text", "text": "nothing to do"}, "end_turn"
		switch said, offered := toolResult(request.Messages[len(request.Messages)-1].Content), strings.Contains(string(body), `"name":"`+tool+`"`); {
		case said != "":
			block["text"] = "the tool said: " + said
		case offered:
			block, stop = map[string]any{"type": "tool_use", "id": "toolu_1", "name": tool, "input": json.RawMessage(arguments)}, "tool_use"
		}
		answer(w, request.Stream, block, stop)
	}))
	t.Cleanup(server.Close)
	return server
}

// toolResult is the text of a tool's result in a message's content, or nothing.
func toolResult(content json.RawMessage) string {
	var blocks []struct {
		Type    string
		Content json.RawMessage
	}
	_ = json.Unmarshal(content, &blocks) // a string is no result
	for _, b := range blocks {
		if b.Type != "tool_result" {
			continue
		}
		var text string
		var parts []struct{ Text string }
		if json.Unmarshal(b.Content, &text) != nil && json.Unmarshal(b.Content, &parts) == nil {
			for _, p := range parts {
				text += p.Text
			}
		}
		return text
	}
	return ""
}

// answer sends a message of one block, as a whole or as events.
func answer(w http.ResponseWriter, stream bool, block map[string]any, stop string) {
	message := map[string]any{
		"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []any{block},
		"stop_reason": stop, "stop_sequence": nil, "usage": map[string]any{"input_tokens": 1, "output_tokens": 1},
	}
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(message)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(name string, fields map[string]any) {
		fields["type"] = name
		data, _ := json.Marshal(fields)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data)
	}
	begun, delta := map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": block["text"]}
	if stop == "tool_use" {
		begun = map[string]any{"type": "tool_use", "id": block["id"], "name": block["name"], "input": map[string]any{}}
		delta = map[string]any{"type": "input_json_delta", "partial_json": string(block["input"].(json.RawMessage))}
	}
	message["content"], message["stop_reason"] = []any{}, nil
	event("message_start", map[string]any{"message": message})
	event("content_block_start", map[string]any{"index": 0, "content_block": begun})
	event("content_block_delta", map[string]any{"index": 0, "delta": delta})
	event("content_block_stop", map[string]any{"index": 0})
	event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 1}})
	event("message_stop", map[string]any{})
}
