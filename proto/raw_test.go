package proto

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMembersKeepBytes(t *testing.T) { // H9, H12, M7: raw bytes survive
	obj := ` { "a" : 1e2 , "\u0062":"x\\\"y\"", "c":[{"d":"]}"}], "a": 9007199254740993 } `
	want := []string{`a=1e2`, `b="x\\\"y\""`, `c=[{"d":"]}"}]`, `a=9007199254740993`}
	var got []string
	for k, v := range Members([]byte(obj)) {
		got = append(got, string(k)+"="+string(v))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if v := Member([]byte(obj), "a"); string(v) != "9007199254740993" { // H8: the last of two wins
		t.Errorf("last duplicate: got %s", v)
	}
	if v := Member([]byte(obj), "A"); v != nil { // H12: names are case-sensitive
		t.Errorf("member A: got %s, want none", v)
	}
}

func TestMembersOfCutLine(t *testing.T) {
	obj := `{"jsonrpc":"2.0","id":"s17","result":{"content":[{"text":"abc`
	if v := Member([]byte(obj), "id"); string(v) != `"s17"` {
		t.Errorf("id of a cut line: got %q", v)
	}
	if v := Member([]byte(obj), "result"); v != nil {
		t.Errorf("a value that is cut was yielded: %q", v)
	}
}

func TestObjectSchema(t *testing.T) { // M3
	for schema, want := range map[string]bool{
		`{"type":"object"}`:             true,
		`{"a":{}, "type" : "object"}`:   true,
		`{"type":["object","null"]}`:    false,
		`{"anyOf":[{"type":"object"}]}`: false,
		`{"type":"array"}`:              false,
		`null`:                          false,
		`"object"`:                      false,
		``:                              false,
	} {
		if got := IsObjectSchema([]byte(schema)); got != want {
			t.Errorf("IsObjectSchema(%s) = %v, want %v", schema, got, want)
		}
	}
}

func TestValid(t *testing.T) { // H8: byte order mark and bad UTF-8 are a parse error
	for text, want := range map[string]bool{
		`{}`: true, `[]`: true, "\ufeff{}": false, "\"\xff\"": false, `{`: false, ``: false, `"\ud800"`: true,
	} {
		if got := Valid([]byte(text)); got != want {
			t.Errorf("Valid(%q) = %v, want %v", text, got, want)
		}
	}
}

// FuzzMembers holds that the scanner agrees with encoding/json on what is valid
// and stays within its input on what is not.
func FuzzMembers(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[true,null,{"c":"\\"}],"d":{"e":"f"}}`))
	f.Add([]byte(`[1,"2",{"3":4}]`))
	f.Add([]byte(`{"a":"`))
	f.Fuzz(func(t *testing.T, data []byte) {
		got := map[string]string{}
		for k, v := range Members(data) {
			got[string(k)] = string(v)
		}
		elements := 0
		for range Elements(data) {
			elements++
		}
		if !Valid(data) {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(data, &want) == nil {
			if len(got) != len(want) {
				t.Fatalf("%d members, want %d", len(got), len(want))
			}
			for k, v := range want {
				if got[k] != strings.TrimSpace(string(v)) {
					t.Fatalf("member %q: got %s, want %s", k, got[k], v)
				}
			}
		}
		var list []json.RawMessage
		if json.Unmarshal(data, &list) == nil && elements != len(list) {
			t.Fatalf("%d elements, want %d", elements, len(list))
		}
	})
}
