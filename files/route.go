package files

import (
	"context"
	"crypto/subtle"
	"io"
	"net/http"
	"net/url"
	"path"
	"runtime"
	"strings"
	"time"
)

// exchange is one request and its answer.
type exchange struct {
	s *Share
	l *live
	w http.ResponseWriter
	r *http.Request

	ctx    context.Context // done when the caller has gone or the share has ended
	prefix string          // Route, with the link's part where the request came by it; ends with a slash
	rel    string          // slash-separated path below the root, "." is the root
	slash  bool            // the URL's path ended with a slash
	query  url.Values
	write  bool          // this request may write
	body   io.ReadCloser // the request's, up to the limit
	begun  bool          // the body has been read from
}

const (
	allowRead  = "GET,HEAD,OPTIONS,PROPFIND"
	allowWrite = "GET,HEAD,PUT,OPTIONS,PATCH,MKCOL,PROPFIND,PROPPATCH,COPY,LOCK,UNLOCK"
)

// ServeHTTP answers everything under /xfer; the caller's bearer, or the link in its place, has been
// judged. Without a share it is 404 always (X7).
func (s *Share) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := &exchange{s: s, w: w, r: r}
	l := s.enter()
	if l == nil {
		x.fail(errNotFound)
		return
	}
	defer l.serving.Done()
	x.l = l
	defer x.cutWithShare()()

	// What is shared cannot act in a browser, nor pass on the address it was reached by (X5, X10).
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", fileCSP)

	x.write = !l.readOnly && s.o.Access() == ReadWrite
	if err := x.limitBody(); err != nil {
		x.fail(err)
		return
	}
	if l.child != nil {
		if namesBridge(r.URL.Path) {
			x.fail(errNotFound) // a child knows no names (X5)
			return
		}
		if !x.write && !reads(r.Method) {
			x.fail(errReadOnly)
			return
		}
		limited := r.WithContext(r.Context())
		limited.Body = x.body
		l.child.Handler().ServeHTTP(w, limited)
		return
	}
	if err := x.parse(); err != nil {
		x.fail(err)
		return
	}
	if err := x.answer(); err != nil {
		x.fail(err)
	}
}

// enter is the share that a request is for, held until serving.Done; nil where there is none.
func (s *Share) enter() *live {
	if s.o.Access() == Off {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur != nil {
		s.cur.serving.Add(1)
	}
	return s.cur
}

// cutWithShare makes the end of the share end this request, also one that waits for bytes to come or go.
func (x *exchange) cutWithShare() (done func()) {
	ctx, cancel := context.WithCancel(x.r.Context())
	x.ctx = ctx
	rc := http.NewResponseController(x.w)
	finished := make(chan struct{})
	stop := context.AfterFunc(x.l.ctx, func() {
		defer close(finished)
		cancel()
		past := time.Unix(1, 0)
		_ = rc.SetReadDeadline(past)
		_ = rc.SetWriteDeadline(past)
	})
	return func() {
		if !stop() {
			<-finished
			// The answer is out; the connection may serve on.
			_ = rc.SetReadDeadline(time.Time{})
			_ = rc.SetWriteDeadline(time.Time{})
		}
		cancel()
	}
}

// limitBody is H3: a length that is over the limit is refused unread, one that turns out so breaks off.
// The request keeps the body it came with: by that one net/http sees that a client still waits for 100
// Continue, and answers it unread.
func (x *exchange) limitBody() error {
	limit := x.s.o.MaxBody()
	if x.r.ContentLength > limit {
		return errTooLarge
	}
	x.body = http.MaxBytesReader(x.w, x.r.Body, limit)
	return nil
}

// Read lets an upload read the request's body, and remembers that it began.
func (x *exchange) Read(p []byte) (int, error) {
	x.begun = true
	return x.body.Read(p)
}

// parse finds out what the request is about.
func (x *exchange) parse() error {
	x.prefix = Route
	rest := strings.TrimPrefix(strings.TrimPrefix(x.r.URL.Path, "/xfer"), "/")
	if x.l.opens(rest) {
		x.prefix = Route + x.l.secret + "/"
		rest = strings.TrimPrefix(rest[len(x.l.secret):], "/")
	}
	rel, err := relative(rest)
	if err != nil {
		return err
	}
	x.rel, x.slash = rel, strings.HasSuffix(x.r.URL.Path, "/")
	x.query, _ = url.ParseQuery(x.r.URL.RawQuery)
	if x.l.file != "" {
		if x.rel != "." && x.rel != x.l.file {
			return errNotFound
		}
		x.rel = x.l.file
		x.write = false
	}
	return nil
}

// relative turns a decoded URL path into a path below the root, "." for the root itself.
func relative(p string) (string, error) {
	if strings.ContainsRune(p, 0) || runtime.GOOS == "windows" && strings.ContainsAny(p, `\:`) {
		return "", errBadPath
	}
	parts := make([]string, 0, 8)
	for part := range strings.SplitSeq(p, "/") {
		switch part {
		case "", ".":
		case "..":
			return "", errBadPath
		default:
			parts = append(parts, part)
		}
	}
	return path.Join(append(parts, ".")...), nil
}

// answer sends the request to its method.
func (x *exchange) answer() error {
	switch x.r.Method {
	case http.MethodGet, http.MethodHead:
		return x.get()
	case http.MethodOptions:
		return x.options()
	case "PROPFIND":
		return x.propfind()
	case http.MethodPut, http.MethodPatch, "PROPPATCH", "MKCOL", "COPY", "LOCK", "UNLOCK":
		if !x.write {
			return errReadOnly
		}
		return x.answerWrite()
	case http.MethodDelete, "MOVE":
		return errForbidden // X7
	}
	x.w.Header().Set("Allow", x.allow())
	return &fault{status: http.StatusMethodNotAllowed, text: "Method Not Allowed"}
}

func (x *exchange) answerWrite() error {
	switch x.r.Method {
	case http.MethodPut:
		return x.put()
	case http.MethodPatch:
		return x.patch()
	case "PROPPATCH":
		return x.proppatch()
	case "MKCOL":
		return x.mkcol()
	case "COPY":
		return x.copy()
	case "LOCK":
		return x.lock()
	}
	return x.unlock()
}

// reads says that a method changes nothing.
func reads(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, "PROPFIND":
		return true
	}
	return false
}

func (x *exchange) allow() string {
	if x.write {
		return allowWrite
	}
	return allowRead
}

// flag says that the query has name with an empty value, as in ?json.
func (x *exchange) flag(name string) bool {
	return x.query.Has(name) && x.query.Get(name) == ""
}

// Opens says that a request's raw path goes by the live share's browser link, which is judged in place
// of the bearer (X10). The comparison takes the same time wherever the first difference is.
func (s *Share) Opens(rawPath string) bool {
	rest, ok := strings.CutPrefix(rawPath, Route)
	l := s.live()
	return ok && l != nil && l.opens(rest)
}

func (l *live) opens(rest string) bool {
	first, _, _ := strings.Cut(rest, "/")
	return l.secret != "" && len(first) == len(l.secret) &&
		subtle.ConstantTimeCompare([]byte(first), []byte(l.secret)) == 1
}
