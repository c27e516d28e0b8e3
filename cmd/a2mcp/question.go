package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How much of a call's arguments a question shows: all of them, or the beginning
// and the end.
const (
	mostShown = 8000 // characters
	endsShown = mostShown / 2
)

// readingTime is how long a question has to be on the screen before an answer
// without its number can be meant for it.
const readingTime = time.Second

// question is an approval that waits for an answer.
type question struct {
	number int
	tool   string
	shown  time.Time
	answer chan error // takes one without waiting; nil allows the call
}

// errNobody is the answer to questions without an operator (M6).
var errNobody = errors.New("tool call denied: nobody is there to approve it, the standard input of the demo has ended")

// approve asks the operator. Its result is what the host answers (M4).
func (t *terminal) approve(ctx context.Context, name string, arguments []byte) error {
	q, err := t.ask(name, arguments)
	if err != nil {
		return err
	}
	select {
	case err := <-q.answer:
		return err
	case <-ctx.Done():
		t.withdraw(q)
		return ctx.Err()
	}
}

func (t *terminal) ask(name string, arguments []byte) (*question, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.deaf {
		return nil, errNobody
	}
	t.asked++
	q := &question{number: t.asked, tool: name, shown: time.Now(), answer: make(chan error, 1)}
	t.questions = append(t.questions, q)
	fmt.Fprintf(t.out, "%s %s [%d] %s %s  %s\n", q.shown.Format(timeFormat), t.paint(yellow, "allow?"), q.number, printable(name),
		bothEnds(string(arguments)), t.paint(yellow, q.choice()))
	return q, nil
}

// choice is what can be typed.
func (q *question) choice() string { return fmt.Sprintf("y %[1]d or n %[1]d", q.number) }

// bothEnds is a text as it is or, if it is very long, its beginning and its end.
func bothEnds(text string) string {
	runes := []rune(text)
	if len(runes) <= mostShown {
		return printable(text)
	}
	return fmt.Sprintf("%s …(%d characters are not shown)… %s", printable(string(runes[:endsShown])),
		len(runes)-mostShown, printable(string(runes[len(runes)-endsShown:])))
}

// withdraw takes back a question that nobody waits for any more.
func (t *terminal) withdraw(q *question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closeLocked(q) {
		fmt.Fprintf(t.out, "%s %s [%d] %s\n", time.Now().Format(timeFormat), t.paint(yellow, "withdrawn"), q.number, printable(q.tool))
	}
}

// closeLocked reports whether the question was open till now.
func (t *terminal) closeLocked(q *question) bool {
	at := slices.Index(t.questions, q)
	if at >= 0 {
		t.questions = slices.Delete(t.questions, at, at+1)
	}
	return at >= 0
}

// inputEnded refuses what is asked and what will be.
func (t *terminal) inputEnded() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.deaf = true
	for _, q := range t.questions {
		q.answer <- errNobody
	}
	t.questions = nil
	if t.asks {
		fmt.Fprintln(t.out, "  the input has ended: what wants an approval is refused from now on")
	}
}

// answer takes a line that was typed: y or n, with the number of a question unless
// it is clear which one is meant.
func (t *terminal) answer(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	word, number, _ := strings.Cut(strings.ToLower(line), " ")
	yes, no := word == "y" || word == "yes", word == "n" || word == "no"
	q, problem := t.meantLocked(strings.TrimSpace(number))
	switch {
	case len(t.questions) == 0:
		fmt.Fprintln(t.out, "  nothing is asked; /a2mcp shows the status")
	case !yes && !no:
		fmt.Fprintf(t.out, "  y allows a call, n denies it, with the number of its question; open: %s\n", t.openLocked())
	case q == nil:
		fmt.Fprintf(t.out, "  %s; open: %s\n", problem, t.openLocked())
	case yes:
		q.answer <- nil
		t.closeLocked(q)
	default:
		q.answer <- errors.New("Tool call denied by user: " + q.tool)
		t.closeLocked(q)
	}
}

// meantLocked is the question that an answer with that number, or without one, is
// for, or else why there is none.
func (t *terminal) meantLocked(number string) (q *question, problem string) {
	n, err := strconv.Atoi(number)
	at := slices.IndexFunc(t.questions, func(q *question) bool { return q.number == n })
	switch {
	case err == nil && at >= 0:
		return t.questions[at], ""
	case number != "":
		return nil, "no open question has that number"
	case len(t.questions) != 1:
		return nil, "more than one question is open; answer with the number"
	case time.Since(t.questions[0].shown) < readingTime:
		return nil, "the question has only just come; answer with its number"
	}
	return t.questions[0], ""
}

func (t *terminal) openLocked() string {
	var open []string
	for _, q := range t.questions {
		open = append(open, strconv.Itoa(q.number))
	}
	return strings.Join(open, ", ")
}
