package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

const testToken = "9Zyxwvutsrqponmlkjihgfedcba-SECRET-zyxwvuts"

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return fmt.Sprintf("<len:%d,sha256:%x>", utf8.RuneCountInString(s), sum[:4])
}

func fold(raw string) string {
	var secrets Secrets
	secrets.Add(testToken)
	return string(Fold(nil, []byte(raw), &secrets))
}

// L3: strings over 120 code points are folded at every depth, keys included.
func TestFold(t *testing.T) {
	exact, long := strings.Repeat("ä", 120), strings.Repeat("ä", 121)
	nested := func(depth int) string {
		return strings.Repeat("[", depth) + `"x"` + strings.Repeat("]", depth)
	}
	for _, c := range []struct{ name, raw, want string }{
		{"as it is", ` { "a" : [ 1e2 , 9007199254740993, true,null ] } `, `{"a":[1e2,9007199254740993,true,null]}`},
		{"120 stay", `"` + exact + `"`, `"` + exact + `"`},
		{"121 do not", `"` + long + `"`, `"` + digest(long) + `"`},
		{"escapes count as what they are", `"` + strings.Repeat(`\u00e4`, 121) + `"`, `"` + digest(long) + `"`},
		{"pairs", `"\ud83d\ude00\ud800"`, `"` + "\U0001F600\uFFFD" + `"`},
		{"keys", `{"` + long + `":{"b":"` + long + `"}}`, `{"` + digest(long) + `":{"b":"` + digest(long) + `"}}`},
		{"html stays", `"<>&"`, `"<>&"`},
		{"one line", `"a\n\r\u0000\u001b\u007f\u2028\u0085"`, `"a\n\r\u0000\u001b\u007f\u2028\u0085"`},
		{"depth 32", nested(32), nested(32)},
		{"depth 33", nested(33), strings.Repeat("[", 33) + `"<max-depth>"` + strings.Repeat("]", 33)},
		{"deeper", `[` + nested(500) + `,{"a":` + nested(40) + `},7]`,
			strings.Repeat("[", 33) + `"<max-depth>"` + strings.Repeat("]", 32) + `,{"a":` +
				strings.Repeat("[", 31) + `"<max-depth>"` + strings.Repeat("]", 31) + `},7]`},
		{"duplicate keys", `{"a":1,"a":2}`, `{"a":1,"a":2}`},
		{"token", `{"` + testToken + `":"x` + testToken + `y"}`, `{"<token>":"x<token>y"}`}, // A5
		{"escaped token", `"\u0039` + testToken[1:] + `"`, `"<token>"`},
		{"no JSON", `{"a":`, `"{\"a\":"`},
	} {
		if got := fold(c.raw); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// L3: over 1,024 code points the folded text is cut and becomes a string; a token
// at the cut does not show in part (A5).
func TestFoldCut(t *testing.T) {
	element := `"` + strings.Repeat("ä", 100) + `"`
	raw := "[" + strings.Repeat(element+",", 50) + "1]"
	var text string
	if err := json.Unmarshal([]byte(fold(raw)), &text); err != nil {
		t.Fatal(err)
	}
	if want := string([]rune(raw)[:1024]) + "…"; text != want {
		t.Errorf("got %d code points, %q…", utf8.RuneCountInString(text), text[:20])
	}
	for before := 900; before < 1030; before++ {
		raw := `["` + strings.Repeat(strings.Repeat("x", 100)+`","`, before/103) + strings.Repeat("x", before%103) + testToken + `","` + strings.Repeat("y", 100) + `"]`
		if got := fold(raw); strings.Contains(got, testToken[:6]) {
			t.Fatalf("%d before the token: %s", before, got)
		}
	}
	exact := "[" + strings.Repeat("1,", 511) + "1]" // 1,024 code points
	if got := fold(exact); got != exact[:1024] && len(exact) == 1024 {
		t.Errorf("1,024 code points were cut: %s", got)
	}
}

// L3: a long argument costs no memory.
func TestFoldOfLongStringsAllocatesLittle(t *testing.T) {
	raw := append(append([]byte(`{"content":"`), bytes.Repeat([]byte(`\n<ä`), 4<<20)...), `"}`...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	Fold(nil, raw, &Secrets{})
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<10 {
		t.Errorf("folding %d MiB allocated %d bytes", len(raw)>>20, got)
	}
}

// FuzzFold: whatever comes in, one line of JSON comes out, and no secret (L3, A5).
func FuzzFold(f *testing.F) {
	f.Add([]byte(`{"a":["b",1,null],"c":{"d":"\u2028\ud800"}}`))
	f.Add([]byte(`"` + testToken + `"`))
	f.Add([]byte("{\"\xff\":[[[[1]]]]}"))
	f.Add([]byte(strings.Repeat("[", 40)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		out := fold(string(raw))
		if !json.Valid([]byte(out)) || !utf8.ValidString(out) {
			t.Fatalf("%q became %q", raw, out)
		}
		if strings.ContainsAny(out, "\n\r\x1b\u2028\u2029") || strings.Contains(out, testToken) {
			t.Fatalf("%q became %q", raw, out)
		}
	})
}

func BenchmarkFold(b *testing.B) {
	raw := []byte(`{"path":"/etc/hostname","offset":1,"nested":{"list":["a","b","c"],"text":"` + strings.Repeat("x", 200) + `"}}`)
	var secrets Secrets
	secrets.Add(testToken)
	buf := make([]byte, 0, 4096)
	for b.Loop() {
		Fold(buf, raw, &secrets)
	}
}
