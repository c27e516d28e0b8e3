package httpfront

import (
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// route is which of the three faces of the port a path belongs to (H1).
type route int

const (
	routeMCP route = iota
	routeFiles
	routeSwitch
)

// rawPath is the path as the caller wrote it, before any decoding: /%78fer/ is
// an ordinary MCP path.
func rawPath(r *http.Request) string {
	if strings.HasPrefix(r.RequestURI, "/") {
		path, _, _ := strings.Cut(r.RequestURI, "?")
		return path
	}
	return r.URL.EscapedPath() // absolute-form, or no server in between
}

func routeOf(path string) route {
	switch {
	case path == "/xfer", strings.HasPrefix(path, "/xfer/"):
		return routeFiles
	case path == "/host-llm":
		return routeSwitch
	}
	return routeMCP
}

// takes refuses a method that the route does not have (H4). The file route
// judges methods itself.
func (at route) takes(method string) error {
	switch {
	case at == routeFiles,
		method == http.MethodPost,
		method == http.MethodDelete && at == routeMCP:
		return nil
	case at == routeSwitch:
		return &httpError{status: http.StatusMethodNotAllowed, allow: "POST"}
	}
	return &httpError{status: http.StatusMethodNotAllowed, allow: "POST, DELETE"}
}

// admit is the part of the judgement that needs no token to be tried: method,
// bearer, origin (H7, steps 1 to 2a).
func (f *Front) admit(at route, path string, r *http.Request) error {
	if err := at.takes(r.Method); err != nil {
		return err
	}
	if at != routeFiles || !f.opt.Files.Opens(path) {
		if err := f.authorize(r); err != nil {
			return err
		}
	}
	return f.checkOrigin(r)
}

// authorize compares the bearer with the token in constant time, lengths first
// (A1, A2).
func (f *Front) authorize(r *http.Request) error {
	token := []byte(f.opt.Token())
	got, ok := bearer(r.Header.Values("Authorization"))
	if ok && len(got) == len(token) && subtle.ConstantTimeCompare([]byte(got), token) == 1 {
		return nil
	}
	if n := f.refused.Add(1); n == 1 || n%50 == 0 { // A4
		f.opt.Log.Warn(fmt.Sprintf("%d unauthorized attempt(s)", n))
	}
	return errUnauthorized
}

// bearer reads the credentials of RFC 6750, section 2.1. Two headers are one too
// many.
func bearer(headers []string) (token string, ok bool) {
	const scheme = "bearer"
	if len(headers) != 1 || len(headers[0]) <= len(scheme) || !strings.EqualFold(headers[0][:len(scheme)], scheme) {
		return "", false
	}
	rest := headers[0][len(scheme):]
	token = strings.TrimLeft(rest, " \t")
	return token, token != "" && len(token) < len(rest)
}

// checkOrigin refuses a web page of another origin: a browser on this machine
// would otherwise be a way in (MCP 2025-11-25, transports, security warning).
func (f *Front) checkOrigin(r *http.Request) error {
	for _, origin := range r.Header.Values("Origin") {
		if origin != "" && !loopbackOrigin(origin) && !f.opt.AllowOrigin(origin) {
			return errForbiddenOrigin
		}
	}
	return nil
}

func loopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
