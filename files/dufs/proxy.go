package dufs

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync"
	"time"
)

// transport reaches children on loopback, whatever proxy the environment names.
var transport = &http.Transport{
	DialContext:           (&net.Dialer{Timeout: 2 * time.Second}).DialContext,
	MaxIdleConnsPerHost:   32,
	IdleConnTimeout:       30 * time.Second,
	ExpectContinueTimeout: 5 * time.Second,
	DisableCompression:    true,
	ReadBufferSize:        copySize,
	WriteBufferSize:       copySize,
}

// copySize is how much goes on at a time, in bytes: with the small buffers that are usual a transfer
// costs twice as much.
const copySize = 256 << 10

// buffers are for the way back.
type buffers struct{ pool sync.Pool }

func (b *buffers) Get() []byte {
	if buf, ok := b.pool.Get().(*[]byte); ok {
		return *buf
	}
	return make([]byte, copySize)
}

func (b *buffers) Put(buf []byte) { b.pool.Put(&buf) }

// proxy is the way to dufs: path and query as they came, the caller's bearer replaced by the child's
// own pair.
func (s *Server) proxy() http.Handler {
	target := &url.URL{Scheme: "http", Host: strings.TrimPrefix(s.base(), "http://")}
	onward := &httputil.ReverseProxy{
		Transport:  transport,
		BufferPool: &buffers{},
		ErrorLog:   slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // a transfer that broke off; stderr is an interface (E1)
		Rewrite: func(r *httputil.ProxyRequest) {
			out := *r.In.URL
			out.Scheme, out.Host = target.Scheme, target.Host
			r.Out.URL = &out
			r.Out.Host = target.Host
			r.Out.SetBasicAuth(s.user, s.secret)
			r.Out.Header.Set("Accept-Encoding", "identity")
		},
		ModifyResponse: func(resp *http.Response) error {
			resp.Header.Del("Www-Authenticate") // of the pair, which no caller has
			if resp.StatusCode/100 == 2 {
				s.remember(resp.Request)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				s.log.Error("file server not reached", "port", s.port, "err", err)
			}
			http.Error(w, "the file server of this share does not answer; share it again", http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if status, text := s.refuses(r); status != 0 {
			http.Error(w, text, status)
			return
		}
		onward.ServeHTTP(w, r)
	})
}

// refuses is what dufs would do although it may only be uploaded to (X6, X7).
func (s *Server) refuses(r *http.Request) (status int, text string) {
	switch r.Method {
	case "CHECKAUTH", "LOGOUT":
		return http.StatusMethodNotAllowed, "this method is not for callers"
	case http.MethodDelete, "MOVE":
		return http.StatusForbidden, "nothing is removed or renamed through a share"
	case http.MethodPatch:
		if r.Header.Get("X-Update-Range") != "append" {
			return http.StatusForbidden, "a file can only be appended to: X-Update-Range: append"
		}
		if !s.made(r.URL.Path) {
			return http.StatusForbidden, "only a file that came in through this share can be appended to"
		}
	case "COPY":
		if s.exists(r.Context(), r.Header.Get("Destination")) {
			return http.StatusForbidden, "there is something at the destination already"
		}
	}
	if asksFor(r.URL.RawQuery, "tokengen") {
		return http.StatusForbidden, "a share gives out no tokens"
	}
	return 0, ""
}

// asksFor reports whether a query has a parameter, also where net/url would drop it for what stands beside
// the name (`tokengen=;`): dufs drops nothing.
func asksFor(query, name string) bool {
	for part := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(part, "=")
		if key, err := url.QueryUnescape(key); err == nil && key == name {
			return true
		}
	}
	return false
}

// remember notes a file that an upload made.
func (s *Server) remember(r *http.Request) {
	name := ""
	switch r.Method {
	case http.MethodPut:
		name = r.URL.Path
	case "COPY":
		if to, err := url.Parse(r.Header.Get("Destination")); err == nil {
			name = to.Path
		}
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ours[path.Clean(name)] = true
}

func (s *Server) made(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ours[path.Clean(name)]
}

// exists asks dufs whether there is a file; one that cannot be asked about is taken for one. So is a
// destination that dufs reads in another way: it takes a stray % for itself, and `//a/b` for a path.
func (s *Server) exists(ctx context.Context, destination string) bool {
	to, err := url.Parse(destination)
	if err != nil || to.Path == "" || to.Scheme == "" && to.Host != "" {
		return true
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, s.base()+to.EscapedPath(), http.NoBody)
	if err != nil {
		return true
	}
	req.SetBasicAuth(s.user, s.secret)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return true
	}
	resp.Body.Close()
	return resp.StatusCode != http.StatusNotFound
}
