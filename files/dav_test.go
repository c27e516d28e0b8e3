package files

import (
	"strings"
	"testing"
)

// A lock that is renewed keeps its token (X5): a client that gets another one thinks its lock lost.
func TestLockIsRenewed(t *testing.T) {
	g := newRig(t)
	g.write("f.txt", "content")
	g.open(map[string]any{})
	first := g.do("LOCK", "/xfer/f.txt", "<lockinfo/>").header.Get("Lock-Token")
	again := g.do("LOCK", "/xfer/f.txt", "", "If", "("+first+")")
	if again.status != 200 || again.header.Get("Lock-Token") != first || !strings.Contains(again.body, strings.Trim(first, "<>")) {
		t.Errorf("%s became %d %s\n%s", first, again.status, again.header.Get("Lock-Token"), again.body)
	}
	// A new lock has a new token, whatever else is locked, and nothing but a token is taken over.
	if other := g.do("LOCK", "/xfer/f.txt", "<lockinfo/>", "If", "("+first+")"); other.header.Get("Lock-Token") == first {
		t.Error("a second lock has the first one's token")
	}
	if odd := g.do("LOCK", "/xfer/f.txt", "", "If", "(<opaquelocktoken:<script>>)"); strings.Contains(odd.body, "script") {
		t.Errorf("the answer repeats what it was sent:\n%s", odd.body)
	}
}
