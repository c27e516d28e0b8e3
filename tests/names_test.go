package tests

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fixedToken is the token of a config that a story does not give.
const fixedToken = "Replay-0123456789-abcdefghijklmnopqrstuvwxy" // 43 characters, as generated ones

// names are what stands for values that differ from run to run. They are given
// in the order in which the values appear.
type names struct {
	shown map[string]string // value → name
	value map[string]string // name → value
	count map[string]int    // kind → how many have been given
	dir   string
}

func newNames(dir string) *names {
	return &names{shown: map[string]string{}, value: map[string]string{}, count: map[string]int{}, dir: dir}
}

// name returns the name of a value, giving the next of its kind if it has none.
func (n *names) name(kind, value string) string {
	if name, ok := n.shown[value]; ok {
		return name
	}
	n.count[kind]++
	name := fmt.Sprintf("<%s%d>", kind, n.count[kind])
	n.set(name, value)
	return name
}

func (n *names) set(name, value string) {
	n.shown[value], n.value[name] = name, value
}

// token makes a token known. The first is $TOKEN, the next $TOKEN2.
func (n *names) token(value string) {
	if _, ok := n.shown[value]; ok || value == "" {
		return
	}
	n.count["token"]++
	name := "$TOKEN"
	if n.count["token"] > 1 {
		name += strconv.Itoa(n.count["token"])
	}
	n.set(name, value)
}

var (
	uuidPattern    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`)
	portPattern    = regexp.MustCompile(`(http://[\w.]+:|"port":)([1-9]\d{3,4})\b`)
	numberPattern  = regexp.MustCompile(`\b[1-9]\d{3,4}\b`)
	requestPattern = regexp.MustCompile(`^(host \{"jsonrpc":"2\.0","id":")(s\d+)(","method")`)
	timePattern    = regexp.MustCompile(`("(?:ts|startedAt)":")\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z"`)
	tookPattern    = regexp.MustCompile(`"ms":\d+(\.\d+)?`)
	pidPattern     = regexp.MustCompile(`"pid":\d+`)
	processPattern = regexp.MustCompile(`\bpid=\d+`)
	runPattern     = regexp.MustCompile(`<(.)\*(\d+)>`)
	tokenPattern   = regexp.MustCompile(`\$TOKEN\d*`)
	namePattern    = regexp.MustCompile(`<(?:uuid|port|s|taken|free|forbidden)\d+>|<pid>|<dir>`)
)

// hide replaces what differs from run to run by its name.
func (n *names) hide(text string) string {
	text = strings.ReplaceAll(text, n.dir, "<dir>")
	for name, value := range n.value {
		if strings.HasPrefix(name, "$") {
			text = strings.ReplaceAll(text, value, name)
		}
	}
	text = uuidPattern.ReplaceAllStringFunc(text, func(id string) string { return n.name("uuid", id) })
	for _, found := range portPattern.FindAllStringSubmatch(text, -1) {
		n.name("port", found[2])
	}
	text = numberPattern.ReplaceAllStringFunc(text, func(number string) string {
		if name, ok := n.shown[number]; ok {
			return name
		}
		return number
	})
	text = timePattern.ReplaceAllString(text, `${1}<ts>"`)
	text = tookPattern.ReplaceAllString(text, `"ms":<ms>`)
	text = pidPattern.ReplaceAllString(text, `"pid":<pid>`)
	if found := requestPattern.FindStringSubmatch(text); found != nil {
		text = found[1] + n.name("s", found[2]) + text[len(found[1])+len(found[2]):]
	}
	return foldRuns(processPattern.ReplaceAllString(text, "pid=<pid>"))
}

// fill puts values in the place of names.
func (n *names) fill(text string) string {
	text = tokenPattern.ReplaceAllStringFunc(text, n.lookup)
	text = namePattern.ReplaceAllStringFunc(text, n.lookup)
	return runPattern.ReplaceAllStringFunc(text, func(run string) string {
		parts := runPattern.FindStringSubmatch(run)
		count, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], count)
	})
}

func (n *names) lookup(name string) string {
	if name == "<dir>" {
		return n.dir
	}
	if value, ok := n.value[name]; ok {
		return value
	}
	return name
}

// foldRuns writes forty and more of one character as <x*40>.
func foldRuns(text string) string {
	const least = 40
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		end := i + size
		for strings.HasPrefix(text[end:], text[i:i+size]) {
			end += size
		}
		if count := (end - i) / size; count >= least && r != utf8.RuneError {
			fmt.Fprintf(&b, "<%c*%d>", r, count)
		} else {
			b.WriteString(text[i:end])
		}
		i = end
	}
	return b.String()
}
