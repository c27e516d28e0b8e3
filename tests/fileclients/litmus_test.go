//go:build unix

package fileclients

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Why litmus fails a test.
const (
	nothingGoes   = "DELETE and MOVE are 403: nothing is removed through a share (X7)"
	nothingChange = "a PUT or COPY over a file with content is 403 (X7)"
	parentsMade   = "PUT, MKCOL and COPY make the parents, as in dufs (X5)"
	filesOnly     = "only files are copied and locked, as in dufs (X5)"
	bodyUnread    = "the body of a PROPFIND is not read, as in dufs (X5)"
	noProperties  = "PROPPATCH is answered and refused, as in dufs (X5)"
	lockHoldsNot  = "a lock is a promise that nobody checks, always exclusive: nothing is overwritten anyway (X5, X7)"
	followsFrom   = "skipped by litmus because a test before it failed"
)

// expectedOfLitmus is everything that litmus 0.13 does not pass, by suite, each with its reason. Both
// a new failure and one that is here and passes now fail the test (F22).
var expectedOfLitmus = map[string]map[string]string{
	"basic": {
		"5 put_no_parent":    parentsMade,
		"7 delete":           nothingGoes,
		"9 delete_fragment":  nothingGoes,
		"12 delete_coll":     nothingGoes,
		"13 mkcol_no_parent": parentsMade,
	},
	"http": {},
	"copymove": {
		"4 copy_overwrite":  nothingChange,
		"5 copy_nodestcoll": parentsMade,
		"7 copy_coll":       filesOnly,
		"8 copy_shallow":    nothingGoes, // the folder of the test before is still there
		"9 move":            nothingGoes,
		"10 move_coll":      nothingGoes,
	},
	"props": {
		"2 propfind_invalid":  bodyUnread,
		"3 propfind_invalid2": bodyUnread,
		"6 propset":           noProperties,
		"7 propget":           followsFrom,
		"9 propmove":          followsFrom,
		"10 propget":          followsFrom,
		"11 propdeletes":      followsFrom,
		"12 propget":          followsFrom,
		"13 propreplace":      followsFrom,
		"14 propget":          followsFrom,
		"15 propnullns":       followsFrom,
		"16 propget":          followsFrom,
		"17 prophighunicode":  followsFrom,
		"18 propget":          followsFrom,
		"19 propremoveset":    followsFrom,
		"20 propget":          followsFrom,
		"21 propsetremove":    followsFrom,
		"22 propget":          followsFrom,
		"23 propvalnspace":    followsFrom,
		"25 propinit":         nothingChange,
		"26 propmanyns":       noProperties,
		"27 propget":          followsFrom,
	},
	"locks": {
		"10 notowner_lock":         lockHoldsNot,
		"11 owner_modify":          nothingChange,
		"13 notowner_lock":         lockHoldsNot,
		"14 copy":                  nothingGoes,
		"15 cond_put":              nothingChange,
		"17 cond_put_with_not":     nothingChange,
		"19 complex_cond_put":      nothingChange,
		"20 fail_complex_cond_put": nothingChange,
		"23 lock_shared":           lockHoldsNot,
		"24 notowner_modify":       followsFrom,
		"25 notowner_lock":         followsFrom,
		"26 owner_modify":          followsFrom,
		"27 double_sharedlock":     followsFrom,
		"28 notowner_modify":       followsFrom,
		"29 notowner_lock":         followsFrom,
		"30 unlock":                followsFrom,
		"32 lock_collection":       filesOnly,
		"33 owner_modify":          followsFrom,
		"34 notowner_modify":       followsFrom,
		"35 refresh":               followsFrom,
		"36 indirect_refresh":      followsFrom,
		"37 unlock":                followsFrom,
	},
}

var (
	litmusTest    = regexp.MustCompile(`^\s*(\d+)\. (\w+?)\.* `)
	litmusVerdict = regexp.MustCompile(`\.* (pass|FAIL|SKIPPED)\b`)
)

// notPassed reads litmus's output: what failed or was skipped, and how many tests it ran.
func notPassed(out string) (failed map[string]bool, verdicts int) {
	failed = map[string]bool{}
	current := ""
	for line := range strings.FieldsFuncSeq(out, func(c rune) bool { return c == '\n' || c == '\r' }) {
		if m := litmusTest.FindStringSubmatch(line); m != nil {
			current = m[1] + " " + m[2]
		} else if !strings.HasPrefix(strings.TrimSpace(line), "....") {
			continue
		}
		if m := litmusVerdict.FindStringSubmatch(line); m != nil {
			verdicts++
			if m[1] != "pass" {
				failed[current] = true
			}
		}
	}
	return failed, verdicts
}

// TestLitmus runs every suite of litmus in a folder of its own: litmus clears away with DELETE, which a
// share does not do (F06, F22).
func TestLitmus(t *testing.T) {
	litmus := program(t, "litmus")
	tests := map[string]int{"basic": 16, "http": 4, "copymove": 13, "props": 30, "locks": 41}
	b := startBridge(t)
	for _, suite := range slices.Sorted(maps.Keys(expectedOfLitmus)) {
		t.Run(suite, func(t *testing.T) {
			b.share(t.TempDir())
			out, _ := run(t, "", "env", "TESTS="+suite, litmus, "-k", b.proxy())
			failed, verdicts := notPassed(out)
			if verdicts != tests[suite] {
				t.Errorf("%d verdicts, want %d", verdicts, tests[suite])
			}
			for name := range failed {
				if expectedOfLitmus[suite][name] == "" {
					t.Errorf("%s: failed", name)
				}
			}
			for name, reason := range expectedOfLitmus[suite] {
				if !failed[name] {
					t.Errorf("%s passes, but is expected not to: %s", name, reason)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}
