package host

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// provider is a model on loopback that speaks as Anthropic's does.
type provider struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string
	answer   func(request string, n int) reply
}

// reply is what the model says: a text, or a call of a tool.
type reply struct {
	text  string
	tool  string
	input any
	hold  <-chan struct{} // half of the text waits for it
}

func newProvider(t *testing.T, answer func(request string, n int) reply) *provider {
	t.Helper()
	p := &provider{answer: answer}
	p.Server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.CloseClientConnections()
		p.Close()
	})
	return p
}

// says answers every request with one text.
func says(text string) func(string, int) reply {
	return func(string, int) reply { return reply{text: text} }
}

// count is the number of requests so far.
func (p *provider) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests)
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	p.requests = append(p.requests, string(body))
	n := len(p.requests)
	p.mu.Unlock()
	if !strings.HasSuffix(r.URL.Path, "/messages") {
		http.NotFound(w, r)
		return
	}
	answer := p.answer(string(body), n)
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind string, data map[string]any) {
		data["type"] = kind
		encoded, _ := json.Marshal(data)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, encoded)
		w.(http.Flusher).Flush()
	}
	event("message_start", map[string]any{"message": map[string]any{
		"id": fmt.Sprintf("m%d", n), "type": "message", "role": "assistant", "content": []any{}, "model": "mock",
		"stop_reason": nil, "stop_sequence": nil, "usage": map[string]int{"input_tokens": 1, "output_tokens": 1},
	}})
	stop := "end_turn"
	if answer.tool != "" {
		stop = "tool_use"
		input, _ := json.Marshal(answer.input)
		event("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{
			"type": "tool_use", "id": fmt.Sprintf("toolu_%d", n), "name": answer.tool, "input": map[string]any{},
		}})
		event("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "input_json_delta", "partial_json": string(input)}})
	} else {
		event("content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
		half := len(answer.text) / 2
		event("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": answer.text[:half]}})
		if answer.hold != nil {
			select {
			case <-answer.hold:
			case <-time.After(patience):
			}
		}
		event("content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": answer.text[half:]}})
	}
	event("content_block_stop", map[string]any{"index": 0})
	event("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]int{"output_tokens": 3},
	})
	event("message_stop", map[string]any{})
}
