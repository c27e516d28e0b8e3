package files

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// maxRanges is how many parts one answer may have.
const maxRanges = 16

// rangesOK judges a Range header the way dufs does, which is stricter than RFC 9110: a range must lie
// wholly inside the file, a suffix may not be longer than it, the unit must be bytes. Beyond that it
// refuses sets of more than maxRanges parts and sets that overlap, so that an answer is never longer
// than the file (a thousand `0-` would ask for it a thousand times). What is refused is 416. An empty
// file has no ranges, and answers 200: some clients send the header with every request.
func rangesOK(header string, size int64) bool {
	set, ok := strings.CutPrefix(header, "bytes=")
	if !ok || strings.Count(set, ",") >= maxRanges {
		return false
	}
	type span struct{ first, last int64 }
	var spans []span
	for part := range strings.SplitSeq(set, ",") {
		from, to, ok := strings.Cut(strings.TrimSpace(part), "-")
		if !ok {
			return false
		}
		first, last := position(from), position(to)
		switch {
		case from == "": // the last n bytes
			if last < 1 || last > size {
				return false
			}
			first, last = size-last, size-1
		case to == "":
			last = size - 1
		}
		if first < 0 || first > last || last >= size {
			return false
		}
		spans = append(spans, span{first, last})
	}
	slices.SortFunc(spans, func(a, b span) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	for i := 1; i < len(spans); i++ {
		if spans[i].first <= spans[i-1].last {
			return false
		}
	}
	return true
}

// position reads a byte position; -1 is none, MaxInt64 one that is out of reach.
func position(s string) int64 {
	for _, c := range s {
		if c < '0' || c > '9' {
			return -1
		}
	}
	if s == "" {
		return -1
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return math.MaxInt64
	}
	return n
}
