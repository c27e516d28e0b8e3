package main

import "testing"

func TestColours(t *testing.T) {
	for _, c := range []struct {
		none, term string
		want       bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}} {
		t.Setenv("NO_COLOR", c.none)
		t.Setenv("TERM", c.term)
		if got := colours(); got != c.want {
			t.Errorf("NO_COLOR=%s TERM=%s: %v", c.none, c.term, got)
		}
	}
}
