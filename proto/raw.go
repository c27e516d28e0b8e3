package proto

import (
	"bytes"
	"encoding/json"
	"iter"
	"unicode/utf8"
)

// Valid reports whether data is one JSON value in valid UTF-8 without a byte
// order mark (RFC 8259, sections 2 and 8.1). Nothing is allocated.
func Valid(data []byte) bool {
	return utf8.Valid(data) && json.Valid(data)
}

// Members walks the members of a JSON object: keys without quotes and escapes,
// values as slices of obj, white space around them removed. It yields nothing
// if obj is not an object. Keys are compared by the caller, in their exact case
// (H12); of two equal keys the later is the one that counts.
//
// obj is expected to be valid JSON. If it is cut short, the members that are
// whole are yielded: that is how the id of an overlong line is found.
func Members(obj []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		i := skipSpace(obj, 0)
		if i >= len(obj) || obj[i] != '{' {
			return
		}
		for i++; ; i++ {
			i = skipSpace(obj, i)
			if i >= len(obj) || obj[i] != '"' {
				return // '}' or cut short
			}
			end := skipString(obj, i)
			if end < 0 {
				return
			}
			key := unquoteKey(obj[i:end])
			i = skipSpace(obj, end)
			if i >= len(obj) || obj[i] != ':' {
				return
			}
			start := skipSpace(obj, i+1)
			if end = skipValue(obj, start); end < 0 {
				return
			}
			if !yield(key, obj[start:end]) {
				return
			}
			i = skipSpace(obj, end)
			if i >= len(obj) || obj[i] != ',' {
				return
			}
		}
	}
}

// Elements walks the elements of a JSON array as slices of arr. It yields
// nothing if arr is not an array; see [Members] for what is expected of it.
func Elements(arr []byte) iter.Seq[[]byte] {
	return func(yield func(value []byte) bool) {
		i := skipSpace(arr, 0)
		if i >= len(arr) || arr[i] != '[' {
			return
		}
		for i++; ; i++ {
			i = skipSpace(arr, i)
			if i >= len(arr) || arr[i] == ']' {
				return
			}
			end := skipValue(arr, i)
			if end < 0 || !yield(arr[i:end]) {
				return
			}
			i = skipSpace(arr, end)
			if i >= len(arr) || arr[i] != ',' {
				return
			}
		}
	}
}

// Member returns the value of the last member of obj with that key, nil if there
// is none.
func Member(obj []byte, key string) []byte {
	var found []byte
	for k, v := range Members(obj) {
		if string(k) == key {
			found = v
		}
	}
	return found
}

// Text decodes a JSON string; ok is false for every other kind of value.
func Text(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	if json.Unmarshal(value, &text) != nil {
		return "", false
	}
	return text, true
}

// IsObject and IsArray report the kind of a valid JSON value without leading
// white space.
func IsObject(value []byte) bool { return len(value) > 0 && value[0] == '{' }

// IsArray reports whether value is an array; see [IsObject].
func IsArray(value []byte) bool { return len(value) > 0 && value[0] == '[' }

// AppendString appends s as a JSON string that escapes what JSON demands and
// nothing more: "<>&" stay as they are (H12).
func AppendString(dst []byte, s string) []byte {
	return append(dst, Encode(s)...)
}

// Encode is json.Marshal without the escapes that exist for the sake of HTML
// (H12). It panics on what cannot be encoded, which no type of this module is.
func Encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("proto: encoding a value of our own: " + err.Error())
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

func unquoteKey(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	var key string
	if json.Unmarshal(quoted, &key) != nil {
		return inner
	}
	return []byte(key)
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index after the string that starts at i, -1 if it does
// not end.
func skipString(b []byte, i int) int {
	for i++; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		quote := i + n
		slashes := 0
		for quote-slashes-1 >= i && b[quote-slashes-1] == '\\' {
			slashes++
		}
		i = quote + 1
		if slashes%2 == 0 {
			return i
		}
	}
}

// skipValue returns the index after the value that starts at i, -1 if it does
// not end within b.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipContainer(b, i)
	}
	for start := i; i < len(b); i++ {
		switch b[i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			if i == start {
				return -1
			}
			return i
		}
	}
	return -1 // within an object or array something has to follow
}

func skipContainer(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		}
		i++
	}
	return -1
}
