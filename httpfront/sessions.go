package httpfront

import (
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/a2mcp/a2mcp/proto"
)

// maxSessions is how many sessions live at a time (S3).
const maxSessions = 64

// sessions are the handshakes that callers hold. Expired and never issued look
// the same (S4).
type sessions struct {
	ttl time.Duration

	mu   sync.Mutex
	byID map[string]*session
	hits uint64
}

type session struct {
	id   string
	seen time.Time
	hit  uint64 // number of the hit that saw it last; tells the order where the clock does not
	busy int    // calls in flight; they keep the session
}

func (s *sessions) seenLocked(live *session) {
	s.hits++
	live.seen, live.hit = time.Now(), s.hits
}

func newSessions(ttl time.Duration) *sessions {
	return &sessions{ttl: ttl, byID: map[string]*session{}}
}

// create issues a session, evicting one if there is no place: the least recently
// seen, those with calls in flight last.
func (s *sessions) create() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	if len(s.byID) >= maxSessions {
		delete(s.byID, s.orderLocked()[len(s.byID)-1].id)
	}
	id := uuid.NewString()
	s.byID[id] = &session{id: id}
	s.seenLocked(s.byID[id])
	return id
}

// touch renews a session; false if it is not there.
func (s *sessions) touch(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.byID[id]
	if found == nil || s.expiredLocked(found) {
		delete(s.byID, id)
		return false
	}
	s.seenLocked(found)
	return true
}

// hold keeps a session while a call is in flight; the returned function lets go.
func (s *sessions) hold(id string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.byID[id]
	if held == nil {
		return func() {}
	}
	held.busy++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		held.busy--
		s.seenLocked(held)
	}
}

// issued is the id if it is a live session's, else empty (L7).
func (s *sessions) issued(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if live := s.byID[id]; live == nil || s.expiredLocked(live) {
		return ""
	}
	return id
}

// end removes a session; false if it was not there.
func (s *sessions) end(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.byID[id]
	delete(s.byID, id)
	return there
}

func (s *sessions) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.byID)
}

// restore makes ids known, the first as the last seen.
func (s *sessions) restore(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Backward(ids[:min(len(ids), maxSessions)]) {
		s.byID[id] = &session{id: id}
		s.seenLocked(s.byID[id])
	}
}

// ids are the live sessions, the last seen first.
func (s *sessions) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked()
	ids := make([]string, 0, len(s.byID))
	for _, live := range s.orderLocked() {
		ids = append(ids, live.id)
	}
	return ids
}

// orderLocked sorts by who stays: busy before idle, then the last seen first.
func (s *sessions) orderLocked() []*session {
	order := make([]*session, 0, len(s.byID))
	for _, live := range s.byID {
		order = append(order, live)
	}
	slices.SortFunc(order, func(a, b *session) int {
		if (a.busy > 0) != (b.busy > 0) {
			if a.busy > 0 {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.hit, a.hit)
	})
	return order
}

func (s *sessions) expireLocked() {
	for id, live := range s.byID {
		if s.expiredLocked(live) {
			delete(s.byID, id)
		}
	}
}

func (s *sessions) expiredLocked(live *session) bool {
	return live.busy == 0 && time.Since(live.seen) > s.ttl
}

// session finds and renews the session of a request (S2, H8).
func (f *Front) session(r *http.Request, id []byte) (string, error) {
	sid := r.Header.Get(proto.SessionHeader)
	if sid == "" {
		return "", &httpError{status: http.StatusBadRequest, code: proto.CodeServer, text: "missing mcp-session-id", id: id}
	}
	if !f.sessions.touch(sid) {
		return "", &httpError{status: http.StatusNotFound, code: proto.CodeServer, text: "unknown session", id: id}
	}
	return sid, nil
}

// endSession answers DELETE, which may be repeated (H5).
func (f *Front) endSession(w http.ResponseWriter, r *http.Request) error {
	if f.sessions.end(r.Header.Get(proto.SessionHeader)) {
		f.opt.Remember(r.Context())
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// initialize always issues a new session and always answers with the one
// revision there is (S1, M1).
func (f *Front) initialize(w http.ResponseWriter, r *http.Request, msg message) error {
	sid := f.sessions.create()
	f.opt.Remember(r.Context())
	w.Header()[proto.SessionHeader] = []string{sid} // in lower case, as it stands
	result := append([]byte(`"result":{"protocolVersion":"`+proto.ProtocolVersion+
		`","capabilities":{"tools":{}},"serverInfo":{"name":"a2mcp","version":`), proto.Encode(f.opt.Version)...)
	respond(w, http.StatusOK, msg.id, append(result, `}}`...))
	return nil
}
