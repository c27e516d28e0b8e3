package audit

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
)

// replacement stands where a secret was (A5).
const replacement = "<token>"

// Secrets are strings that must never show: the current token and former ones.
// The zero value is an empty set; it may be used from any goroutine.
type Secrets struct {
	mu  sync.Mutex // held by Add
	set atomic.Pointer[[][]byte]
}

// Add puts a secret into the set. An empty one is ignored.
func (s *Secrets) Add(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.all()
	if secret == "" || slices.ContainsFunc(old, func(known []byte) bool { return string(known) == secret }) {
		return
	}
	grown := append(slices.Clone(old), []byte(secret))
	s.set.Store(&grown)
}

// Redact replaces every secret in text. Text without one is returned as it is.
func (s *Secrets) Redact(text []byte) []byte {
	for _, secret := range s.all() {
		if bytes.Contains(text, secret) {
			text = bytes.ReplaceAll(text, secret, []byte(replacement))
		}
	}
	return text
}

// RedactString is Redact for a string.
func (s *Secrets) RedactString(text string) string { return string(s.Redact([]byte(text))) }

func (s *Secrets) all() [][]byte {
	if set := s.set.Load(); set != nil {
		return *set
	}
	return nil
}
