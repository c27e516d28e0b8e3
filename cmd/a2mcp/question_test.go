package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// An answer without a number is taken for the one question that has been on the
// screen for a second, and for no other: it was typed for the one before.
func TestAnswerWithoutANumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		term := &terminal{out: &out}
		answered := make(chan error, 1)
		go func() { answered <- term.approve(t.Context(), "bash", []byte(`{}`)) }()
		synctest.Wait()
		term.answer("y")
		if len(answered) > 0 || !strings.Contains(out.String(), "the question has only just come; answer with its number; open: 1") {
			t.Fatalf("at once: %s", out.String())
		}
		time.Sleep(readingTime)
		term.answer("y")
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
}
