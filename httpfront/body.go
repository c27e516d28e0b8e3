package httpfront

import (
	"io"
	"net/http"
	"time"
)

// Bounds of what is read of a body that is refused, so that its sender gets to
// read the answer instead of a reset (H3).
const (
	drainBytes = 256 << 20
	drainTime  = 30 * time.Second
	leaveTime  = 2 * time.Second // for the body of somebody who was not let in
)

// leaveBody bounds the wait for the body of a request that was not let in, which
// net/http reads before it answers: who has no token can hold no connection by
// sending slowly. (Answering first, in full duplex, breaks connections that are
// used again.)
func leaveBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(leaveTime)) // what cannot be bounded is as it was
	}
}

// readBody reads a body up to the limit (H3). The buffer grows with what has
// arrived, not with what was announced, and at most fourfold at a time.
func (f *Front) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	limit := f.opt.MaxBody()
	if r.ContentLength > limit {
		return nil, f.tooLarge(w, r)
	}
	most := limit + 1
	if r.ContentLength >= 0 {
		most = r.ContentLength + 1 // one more: Read reports the end without growing
	}
	buf := make([]byte, 0, min(most, 64<<10))
	for {
		if int64(len(buf)) > limit {
			return nil, f.tooLarge(w, r)
		}
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(most, int64(cap(buf))*4))
			copy(grown, buf)
			buf = grown
		}
		n, err := r.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > limit:
			continue
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, errParse // a body that broke off is not JSON
		}
	}
}

// tooLarge answers 413 at once and then reads on for a while: a sender that is
// still writing would otherwise see its connection reset before it reads. A
// sender that waits for 100 Continue is not asked for anything.
func (f *Front) tooLarge(w http.ResponseWriter, r *http.Request) error {
	if r.Header.Get("Expect") != "" {
		return errBodyTooLarge
	}
	w.Header().Set("Connection", "close")
	control := http.NewResponseController(w)
	if control.EnableFullDuplex() != nil {
		return errBodyTooLarge
	}
	f.answerError(w, errBodyTooLarge)
	_ = control.Flush()
	_ = control.SetReadDeadline(time.Now().Add(drainTime))
	_, _ = io.CopyN(io.Discard, r.Body, drainBytes)
	return nil
}
