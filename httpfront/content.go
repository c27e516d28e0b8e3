package httpfront

import "github.com/a2mcp/a2mcp/proto"

// normalize makes content hold only what clients of this bridge are promised
// (M4): text blocks {type, text} and image blocks {type, data, mimeType}. What is
// already so is returned as it is, without a copy.
func normalize(content []byte) []byte {
	if !proto.IsArray(content) {
		if content == nil {
			return []byte(`[]`)
		}
		return append(appendFolded([]byte(`[`), content), ']')
	}
	clean := true
	for block := range proto.Elements(content) {
		if clean = isClean(block); !clean {
			break
		}
	}
	if clean {
		return content
	}
	out := append(make([]byte, 0, len(content)+64), '[')
	for block := range proto.Elements(content) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = appendBlock(out, block)
	}
	return append(out, ']')
}

// firstText is the text of the first block, "" if that has none.
func firstText(content []byte) string {
	if proto.IsArray(content) {
		for block := range proto.Elements(content) {
			text, _ := proto.Text(proto.Member(block, "text"))
			return text
		}
	}
	return ""
}

// isClean reports whether a block has exactly the members of its kind, in order.
func isClean(block []byte) bool {
	position := 0
	var want []string
	for key, value := range proto.Members(block) {
		if position == 0 {
			switch string(value) {
			case `"text"`:
				want = []string{"type", "text"}
			case `"image"`:
				want = []string{"type", "data", "mimeType"}
			}
		}
		if position >= len(want) || string(key) != want[position] || value[0] != '"' {
			return false
		}
		position++
	}
	return position > 0 && position == len(want)
}

// appendBlock writes a text or an image block with its own members only, and any
// third kind as the text of its JSON.
func appendBlock(dst, block []byte) []byte {
	var kind string
	var text, data, mime []byte
	for key, value := range proto.Members(block) {
		switch string(key) {
		case "type":
			kind, _ = proto.Text(value)
		case "text":
			text = value
		case "data":
			data = value
		case "mimeType":
			mime = value
		}
	}
	switch {
	case kind == "text" && isString(text):
		return append(append(append(dst, `{"type":"text","text":`...), text...), '}')
	case kind == "image" && isString(data) && isString(mime):
		dst = append(append(dst, `{"type":"image","data":`...), data...)
		return append(append(append(dst, `,"mimeType":`...), mime...), '}')
	}
	return appendFolded(dst, block)
}

func appendFolded(dst, value []byte) []byte {
	dst = append(append(dst, `{"type":"text","text":`...), proto.Encode(string(value))...)
	return append(dst, '}')
}

func isString(value []byte) bool { return len(value) > 0 && value[0] == '"' }
