package files

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// natural compares names as people order them: letters without regard to case, numbers by their value,
// so that a2 comes before a10.
func natural(a, b string) int {
	for a != "" && b != "" {
		if isDigit(a[0]) && isDigit(b[0]) {
			var na, nb string
			na, a = number(a)
			nb, b = number(b)
			if c := cmp.Or(cmp.Compare(len(na), len(nb)), strings.Compare(na, nb)); c != 0 {
				return c
			}
			continue
		}
		ra, la := utf8.DecodeRuneInString(a)
		rb, lb := utf8.DecodeRuneInString(b)
		if c := cmp.Compare(unicode.ToLower(ra), unicode.ToLower(rb)); c != 0 {
			return c
		}
		a, b = a[la:], b[lb:]
	}
	return cmp.Compare(len(a), len(b))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// number cuts the digits off the start of s, which begins with one, and drops their leading zeros.
func number(s string) (digits, rest string) {
	i := 0
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return strings.TrimLeft(s[:i], "0"), s[i:]
}
