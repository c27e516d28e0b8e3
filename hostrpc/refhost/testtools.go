package refhost

import (
	"bytes"
	"encoding/base64"
	"errors"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const anyObject = `{"type":"object","properties":{}}`

// testTools are what tests of the bridge need: tools that misbehave in every way
// a host's tools do, odd schemas, and the tools that the MCP conformance suites
// call by name.
func testTools() []tool {
	list := []tool{
		{name: "echo", description: "Return the text.", schema: `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`, run: echo},
		{name: "raw", description: "Return the arguments as they came, as a text.", schema: anyObject, run: func(_ env, arguments []byte) ([]byte, bool, error) {
			return proto.TextContent(string(arguments)), false, nil
		}},
		{name: "throw", description: "Throw.", schema: anyObject, run: func(env, []byte) ([]byte, bool, error) {
			return nil, false, errors.New("thrown on purpose")
		}},
		{name: "panic", description: "Panic.", schema: anyObject, run: func(env, []byte) ([]byte, bool, error) { panic("on purpose") }},
		{name: "never", description: "Never answer, unless it is cancelled.", schema: anyObject, run: func(e env, _ []byte) ([]byte, bool, error) {
			<-e.ctx.Done()
			return nil, false, e.ctx.Err()
		}},
		{name: "stubborn", description: "Run for ms milliseconds and ignore being cancelled.", schema: millis, run: func(_ env, arguments []byte) ([]byte, bool, error) {
			return sleep(arguments, nil)
		}},
		{name: "slow", description: "Run for ms milliseconds.", schema: millis, run: func(e env, arguments []byte) ([]byte, bool, error) {
			return sleep(arguments, e.ctx.Done())
		}},
		{name: "slow_exclusive", description: "Run for ms milliseconds, one at a time.", schema: millis, exclusive: true, run: func(e env, arguments []byte) ([]byte, bool, error) {
			return sleep(arguments, e.ctx.Done())
		}},
		{name: "asks", description: "Ask the operator first.", schema: anyObject, asks: true, run: text("approved")},
		{name: "big", description: "Return a text of size bytes, 10 MB if nothing is said.", schema: `{"type":"object","properties":{"size":{"type":"integer"}}}`, run: big},
		{name: "vanish", description: "Gone when it is called.", schema: anyObject, vanished: true, run: text("")},
		{name: "html", description: "Return <>& and U+2028.", schema: anyObject, run: raw(`[{"type":"text","text":"<b>&` + "\u2028" + `\u003c"}]`)},
		{name: "third_kind", description: "Return a kind of content that is neither text nor image.", schema: anyObject, run: raw(`[{"type":"resource","uri":"x://y","n":1e2},{"type":"text","text":"after"}]`)},
		{name: "detailed_image", description: "Return an image with a member that MCP does not have.", schema: anyObject, run: raw(`[{"type":"image","mimeType":"image/png","detail":"high","data":"` + pixel + `"}]`)},
		{name: "odd_null", description: "Its schema is null.", schema: `null`, run: text("ok")},
		{name: "odd_absent", description: "It has no schema.", run: text("ok")},
		{name: "odd_string", description: "Its schema is a string.", schema: `"string"`, run: text("ok")},
		{name: "odd_any_of", description: "Its schema has no type.", schema: `{"anyOf":[{"type":"object"},{"type":"null"}]}`, run: text("ok")},
		{name: "odd_array", description: "Its schema is an array's.", schema: `{"type":"array","items":{}}`, run: text("ok")},
	}
	return append(list, suiteTools()...)
}

const millis = `{"type":"object","properties":{"ms":{"type":"integer"}},"required":["ms"]}`

func echo(_ env, arguments []byte) ([]byte, bool, error) {
	content := append(make([]byte, 0, len(arguments)+40), `[{"type":"text","text":`...)
	content = append(content, proto.Member(arguments, "text")...)
	return append(content, `}]`...), false, nil
}

func sleep(arguments []byte, stop <-chan struct{}) ([]byte, bool, error) {
	a, err := decode[struct{ MS int }](arguments)
	if err != nil {
		return nil, false, err
	}
	select {
	case <-time.After(time.Duration(a.MS) * time.Millisecond):
	case <-stop:
	}
	return proto.TextContent("done"), false, nil
}

func big(_ env, arguments []byte) ([]byte, bool, error) {
	a, err := decode[struct{ Size int }](arguments)
	if a.Size == 0 {
		a.Size = 10_000_000
	}
	return proto.TextContent(string(bytes.Repeat([]byte("x"), a.Size))), false, err
}

func raw(content string) func(env, []byte) ([]byte, bool, error) {
	return func(env, []byte) ([]byte, bool, error) { return []byte(content), false, nil }
}

func text(s string) func(env, []byte) ([]byte, bool, error) { return raw(string(proto.TextContent(s))) }

// suiteTools are named and described by @modelcontextprotocol/conformance. Those
// that need more of MCP than the bridge speaks answer what they can.
func suiteTools() []tool {
	const wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA="
	return []tool{
		{name: "test_simple_text", description: "Return a text.", schema: anyObject, run: text("This is a simple text response for testing.")},
		{name: "test_image_content", description: "Return an image.", schema: anyObject, run: func(env, []byte) ([]byte, bool, error) {
			data, err := base64.StdEncoding.DecodeString(pixel)
			return imageContent(data, "image/png"), false, err
		}},
		{name: "test_error_handling", description: "Return an error.", schema: anyObject, run: func(env, []byte) ([]byte, bool, error) {
			return nil, false, errors.New("This tool intentionally returns an error for testing") //nolint:staticcheck // the suite's text
		}},
		{name: "test_audio_content", description: "Return audio.", schema: anyObject, run: raw(`[{"type":"audio","data":"` + wav + `","mimeType":"audio/wav"}]`)},
		{name: "test_embedded_resource", description: "Return a resource.", schema: anyObject, run: raw(`[{"type":"resource","resource":{"uri":"test://embedded-resource","mimeType":"text/plain","text":"This is an embedded resource content."}}]`)},
		{name: "test_multiple_content_types", description: "Return several kinds.", schema: anyObject, run: raw(`[{"type":"text","text":"Multiple content types test:"},{"type":"image","data":"` + pixel + `","mimeType":"image/png"},{"type":"resource","resource":{"uri":"test://mixed-content-resource","mimeType":"application/json","text":"{}"}}]`)},
		{name: "test_tool_with_logging", description: "Log while running.", schema: anyObject, run: text("ran without a log: the bridge has none")},
		{name: "test_tool_with_progress", description: "Report progress.", schema: anyObject, run: text("ran without progress: the bridge answers in one piece")},
		{name: "test_sampling", description: "Ask the client's model.", schema: `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`, run: text("not asked: the bridge asks clients for nothing")},
		{name: "test_elicitation", description: "Ask the client's user.", schema: `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`, run: text("not asked: the bridge asks clients for nothing")},
		{name: "test_elicitation_sep1034_defaults", description: "Ask with defaults.", schema: anyObject, run: text("not asked: the bridge asks clients for nothing")},
		{name: "test_elicitation_sep1330_enums", description: "Ask with enums.", schema: anyObject, run: text("not asked: the bridge asks clients for nothing")},
		{name: "test_reconnection", description: "Survive a reconnection.", schema: anyObject, run: text("done")},
		{name: "json_schema_2020_12_tool", description: "Has a schema with the keywords of 2020-12.", schema: `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
			`"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
			`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},` +
			`"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],` +
			`"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},` +
			`"additionalProperties":false}`, run: text("ok")},
	}
}
