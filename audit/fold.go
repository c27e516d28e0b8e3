package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits of what a record keeps of a call's arguments (L3).
const (
	maxText   = 120  // code points of a string or key
	maxDepth  = 32   // levels; the arguments themselves are level 0
	maxFolded = 1024 // code points of the folded arguments
)

// Fold appends the folded form of raw, a JSON value, to dst: compact, on one
// line, strings over 120 code points as <len:N,sha256:…>, what lies deeper than
// 32 levels as <max-depth>. Where that is longer than 1,024 code points, the
// first 1,024 and "…" are appended as a string. Secrets are replaced before
// anything is cut.
//
// Memory does not grow with raw: a long string is hashed as it is read, and
// reading ends where the cut is.
func Fold(dst, raw []byte, secrets *Secrets) []byte {
	f := folder{raw: raw, secrets: secrets, start: len(dst), out: dst}
	ok := f.value(0)
	f.space()
	text := f.out[f.start:]
	switch {
	case f.over():
		cut := make([]byte, 0, 4*maxFolded+4)
		return appendQuoted(f.out[:f.start], append(append(cut, text[:f.cut]...), "…"...))
	case !ok || f.at < len(raw): // not JSON: nobody sends that, but nothing is lost
		return appendFolded(f.out[:f.start], raw, secrets)
	}
	return f.out
}

// folder walks a value once.
type folder struct {
	raw     []byte
	at      int
	secrets *Secrets
	out     []byte
	start   int // where the value begins in out

	head    [utf8.UTFMax * maxText]byte // room for the string being read
	counted int                         // bytes of the value whose code points are counted
	points  int
	cut     int // bytes of the first 1,024 code points, once there are more
}

// over reports that more than 1,024 code points have been written, and notes
// where the 1,024th ended.
func (f *folder) over() bool {
	text := f.out[f.start:]
	for f.cut == 0 && f.counted < len(text) {
		if f.points == maxFolded {
			f.cut = f.counted
			break
		}
		_, n := utf8.DecodeRune(text[f.counted:])
		f.counted += n
		f.points++
	}
	return f.cut > 0
}

// value folds the value at the cursor. It returns false for what is not JSON,
// and true early once there is enough for the cut.
func (f *folder) value(depth int) bool {
	f.space()
	if f.at >= len(f.raw) {
		return false
	}
	if depth > maxDepth {
		f.out = append(f.out, `"<max-depth>"`...)
		return f.skip()
	}
	switch f.raw[f.at] {
	case '{':
		return f.container(depth, '}', true)
	case '[':
		return f.container(depth, ']', false)
	case '"':
		return f.text()
	}
	return f.literal()
}

func (f *folder) container(depth int, end byte, keyed bool) bool {
	f.out = append(f.out, f.raw[f.at])
	f.at++
	for first := true; ; first = false {
		f.space()
		if f.at >= len(f.raw) {
			return false
		}
		if f.raw[f.at] == end {
			f.at++
			f.out = append(f.out, end)
			return true
		}
		if !first {
			if f.raw[f.at] != ',' {
				return false
			}
			f.at++
			f.out = append(f.out, ',')
		}
		if keyed && !f.key() || !f.value(depth+1) {
			return false
		}
		if f.over() {
			return true
		}
	}
}

func (f *folder) key() bool {
	f.space()
	if f.at >= len(f.raw) || f.raw[f.at] != '"' || !f.text() {
		return false
	}
	f.space()
	if f.at >= len(f.raw) || f.raw[f.at] != ':' {
		return false
	}
	f.at++
	f.out = append(f.out, ':')
	return true
}

// text folds a string, key or value.
func (f *folder) text() bool {
	s := stringReader{raw: f.raw, at: f.at + 1, head: f.head[:0]}
	ok := s.read()
	f.at = s.at
	if s.hash != nil {
		f.out = appendDigest(f.out, s.points, s.hash.Sum(nil))
	} else {
		f.out = appendQuoted(f.out, f.secrets.Redact(s.head))
	}
	return ok
}

// literal copies a number, true, false or null. A token of digits alone would
// show as a number.
func (f *folder) literal() bool {
	start := f.at
	for f.at < len(f.raw) && strings.IndexByte(",]} \t\r\n", f.raw[f.at]) < 0 {
		f.at++
	}
	word := f.raw[start:f.at]
	if len(word) == 0 {
		return false
	}
	switch {
	case len(f.secrets.Redact(word)) != len(word):
		f.out = appendQuoted(f.out, f.secrets.Redact(word))
	case len(word) > maxText:
		f.out = appendFolded(f.out, word, f.secrets)
	default:
		f.out = append(f.out, word...)
	}
	return len(word) > maxText || json.Valid(word)
}

// skip passes over a value without writing it.
func (f *folder) skip() bool {
	depth := 0
	for f.at < len(f.raw) {
		switch f.raw[f.at] {
		case '"':
			s := stringReader{raw: f.raw, at: f.at + 1, skip: true}
			if !s.read() {
				return false
			}
			f.at = s.at
		case '{', '[':
			depth++
			f.at++
		case '}', ']':
			if depth == 0 {
				return true // the value was a literal, and its container ends
			}
			depth--
			f.at++
		case ',':
			if depth == 0 {
				return true
			}
			f.at++
		default: // part of a literal, a colon or white space
			f.at++
			continue
		}
		if depth == 0 {
			return true
		}
	}
	return depth == 0
}

func (f *folder) space() {
	for f.at < len(f.raw) && (f.raw[f.at] == ' ' || f.raw[f.at] == '\t' || f.raw[f.at] == '\n' || f.raw[f.at] == '\r') {
		f.at++
	}
}

// stringReader decodes a JSON string as far as it has to: whole up to 120 code
// points, beyond that into a hash.
type stringReader struct {
	raw  []byte
	at   int // behind the opening quote; in the end behind the closing one
	skip bool

	head    []byte // decoded, while it is short
	points  int
	scratch [utf8.UTFMax]byte
	hash    interface {
		Write([]byte) (int, error)
		Sum([]byte) []byte
	}
}

func (s *stringReader) read() bool {
	for s.at < len(s.raw) {
		run := s.raw[s.at:]
		if end := bytes.IndexAny(run, `"\`); end >= 0 {
			run = run[:end]
		}
		s.add(run)
		s.at += len(run)
		if s.at >= len(s.raw) {
			return false
		}
		if s.raw[s.at] == '"' {
			s.at++
			return true
		}
		if !s.escape() {
			return false
		}
	}
	return false
}

// add takes a run of decoded bytes.
func (s *stringReader) add(run []byte) {
	if s.skip || len(run) == 0 {
		return
	}
	s.points += utf8.RuneCount(run)
	switch {
	case s.hash != nil:
		_, _ = s.hash.Write(run)
	case s.points > maxText:
		h := sha256.New()
		_, _ = h.Write(s.head)
		_, _ = h.Write(run)
		s.hash = h
	default:
		s.head = append(s.head, run...)
	}
}

// escape decodes the escape at the cursor.
func (s *stringReader) escape() bool {
	if s.at+1 >= len(s.raw) {
		s.at = len(s.raw)
		return false
	}
	c := s.raw[s.at+1]
	s.at += 2
	if at := strings.IndexByte(`"\/bfnrt`, c); at >= 0 {
		s.scratch[0] = "\"\\/\b\f\n\r\t"[at]
		s.add(s.scratch[:1])
		return true
	}
	if c != 'u' {
		return false
	}
	r, ok := s.hex4()
	if ok && utf16.IsSurrogate(r) {
		r = s.surrogate(r)
	}
	s.add(s.scratch[:utf8.EncodeRune(s.scratch[:], r)])
	return ok
}

// surrogate joins a pair; a lone half is U+FFFD.
func (s *stringReader) surrogate(high rune) rune {
	if !bytes.HasPrefix(s.raw[s.at:], []byte(`\u`)) {
		return utf8.RuneError
	}
	back := s.at
	s.at += 2
	low, ok := s.hex4()
	if r := utf16.DecodeRune(high, low); ok && r != utf8.RuneError {
		return r
	}
	s.at = back
	return utf8.RuneError
}

func (s *stringReader) hex4() (rune, bool) {
	if s.at+4 > len(s.raw) {
		s.at = len(s.raw)
		return utf8.RuneError, false
	}
	n, err := strconv.ParseUint(string(s.raw[s.at:s.at+4]), 16, 16)
	s.at += 4
	return rune(n), err == nil
}

// appendFolded appends a text as a JSON string, folded if it is long (L3).
func appendFolded(dst, text []byte, secrets *Secrets) []byte {
	if points := utf8.RuneCount(text); points > maxText {
		sum := sha256.Sum256(text)
		return appendDigest(dst, points, sum[:])
	}
	return appendQuoted(dst, secrets.Redact(text))
}

func appendDigest(dst []byte, points int, sum []byte) []byte {
	dst = strconv.AppendInt(append(dst, `"<len:`...), int64(points), 10)
	dst = hex.AppendEncode(append(dst, `,sha256:`...), sum[:4])
	return append(dst, `>"`...)
}

// appendQuoted appends text as a JSON string that stays on its line in every
// viewer and moves no cursor: control characters, line separators and bytes that
// are no UTF-8 are escaped (F4), "<>&" are not (H12).
func appendQuoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	for len(text) > 0 {
		if c := text[0]; c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != 0x7f {
			dst = append(dst, c)
			text = text[1:]
			continue
		}
		r, n := utf8.DecodeRune(text)
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case movesCursor(r):
			dst = append(dst, '\\', 'u')
			dst = hex.AppendEncode(dst, []byte{byte(r >> 8), byte(r)})
		default:
			dst = utf8.AppendRune(dst, r) // U+FFFD for a byte that is no UTF-8
		}
		text = text[n:]
	}
	return append(dst, '"')
}

// movesCursor reports whether a character does something else to a terminal than
// fill its place: control characters, line separators, changes of direction.
func movesCursor(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069
}
