package tests

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	entryPattern    = regexp.MustCompile(`(?m)^([A-Z][0-9]+)  ?`)
	citationPattern = regexp.MustCompile(`\b[ACDEFHLMOPSTX][1-9][0-9]?\b`)
)

// TestContractIsHeld: every number of proto/CONTRACT.md, but for section N, is
// named by a test, and no test names one that is not there. Numbers of two digits
// with a leading zero, such as H09, are those of public bug reports.
func TestContractIsHeld(t *testing.T) {
	text, err := os.ReadFile("../proto/CONTRACT.md")
	if err != nil {
		t.Fatal(err)
	}
	contract := map[string]bool{}
	for _, found := range entryPattern.FindAllStringSubmatch(string(text), -1) {
		contract[found[1]] = true
	}
	if len(contract) < 70 {
		t.Fatalf("only %d numbers in the contract", len(contract))
	}
	cited := citations(t)
	for number := range contract {
		if number[0] != 'N' && cited[number] == "" {
			t.Errorf("%s has no test", number)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(cited)) {
		if !contract[number] && !bugReports[number] {
			t.Errorf("%s names %s, which the contract does not have", cited[number], number)
		}
	}
	for number := range bugReports {
		if cited[number] == "" {
			t.Errorf("no test names the bug report %s", number)
		}
	}
}

// bugReports are the numbers of public bug reports that tests name; they stand
// beside the contract's and above its highest.
var bugReports = map[string]bool{"H14": true, "H16": true, "H17": true, "H20": true, "H23": true, "H26": true,
	"F12": true, "F14": true, "F16": true, "F19": true, "F22": true, "T14": true, "T17": true, "T18": true}

// citations finds the numbers that the tests name, in comments of Go tests and in
// the first words of stories, each with a file that names it.
func citations(t *testing.T) map[string]string {
	t.Helper()
	cited := map[string]string{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && entry.Name() == ".git" {
			return skipOrFail(err)
		}
		isTest := strings.HasSuffix(path, "_test.go") && filepath.Base(path) != "contract_test.go" || strings.HasSuffix(path, ".test.ts")
		isStory := strings.HasSuffix(path, ".txtar")
		if !isTest && !isStory {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, line := range citingLines(string(data), isStory) {
			for _, number := range citationPattern.FindAllString(line, -1) {
				cited[number] = path
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return cited
}

func skipOrFail(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

// citingLines are the comments of a test, or what stands before the first file
// of a story and its remarks.
func citingLines(text string, story bool) []string {
	var lines []string
	head := true
	for line := range strings.Lines(text) {
		switch {
		case story:
			if strings.HasPrefix(line, "-- ") {
				head = false
			}
			if head || strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		default:
			if _, comment, ok := strings.Cut(line, "//"); ok {
				lines = append(lines, comment)
			}
		}
	}
	return lines
}
