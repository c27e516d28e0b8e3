package files

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/a2mcp/a2mcp/audit"
)

// What WebDAV clients need, as far as dufs offers it. Locks are promises that nobody checks: a file is
// never overwritten anyway, so there is nothing to protect from a second writer.

func (x *exchange) options() error {
	x.w.Header().Set("Allow", x.allow())
	x.w.Header().Set("DAV", "1, 2, 3")
	x.w.Header().Set("Content-Length", "0")
	return nil
}

// mkcol makes a folder, with its parents as dufs does.
func (x *exchange) mkcol() error {
	if x.r.ContentLength != 0 {
		return &fault{status: http.StatusUnsupportedMediaType, text: "Unsupported Media Type: MKCOL takes no body"}
	}
	exists := &fault{status: http.StatusMethodNotAllowed, text: "Already exists"}
	if x.rel == "." {
		return exists
	}
	sp, err := x.spot(x.rel)
	if err != nil {
		return err
	}
	defer sp.close()
	way, err := sp.descend(sp.rel)
	switch {
	case err == nil && way[len(way)-1].made:
		way.close()
		x.w.WriteHeader(http.StatusCreated)
		return nil
	case err == nil:
		way.close()
		return exists
	}
	way.undo()
	if _, lerr := sp.dir.Lstat(sp.rel); lerr == nil && !errors.Is(err, errForbidden) {
		return exists
	}
	return err
}

// copy copies a file to a place that is free: 204, or 403 (X7).
func (x *exchange) copy() error {
	to, err := x.destination()
	if err != nil {
		return err
	}
	from, info, err := x.l.open(x.rel)
	if err != nil {
		return err
	}
	defer from.Close()
	if info.IsDir() {
		return &fault{status: http.StatusForbidden, text: "Forbidden: only files can be copied"}
	}
	sp, err := x.spot(to)
	if err != nil {
		return err
	}
	defer sp.close()
	sp.fresh = true
	if err := sp.free(); err != nil {
		return err
	}
	if err := sp.fill(func(f *os.File) error { return copyUntil(x.ctx, f, from) }); err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

// destination is the path that a Destination header names, which must be under this route.
func (x *exchange) destination() (string, error) {
	invalid := &fault{status: http.StatusBadRequest, text: "Invalid Destination"}
	u, err := url.Parse(x.r.Header.Get("Destination"))
	if err != nil {
		return "", invalid
	}
	rest, ok := strings.CutPrefix(u.Path, Route)
	if !ok {
		return "", invalid
	}
	if x.l.opens(rest) {
		rest = rest[len(x.l.secret):]
	}
	to, err := relative(rest)
	if err != nil || to == "." {
		return "", invalid
	}
	return to, nil
}

// lock answers a lock that holds nothing. A name that is not there yet becomes an empty file, as RFC
// 4918 has it: davfs2 makes its files that way and fills them with PUT.
func (x *exchange) lock() error {
	status := http.StatusOK
	f, info, err := x.l.open(x.rel)
	switch {
	case err == nil:
		f.Close()
		if info.IsDir() {
			return errNotFound
		}
	case errors.Is(err, errNotFound):
		sp, err := x.spot(x.rel)
		if err != nil {
			return err
		}
		defer sp.close()
		sp.fresh = true
		if path.Base(sp.rel) != sp.rel {
			return errNoFolder
		}
		if err := sp.free(); err != nil {
			return err
		}
		if err := sp.fill(func(*os.File) error { return nil }); err != nil {
			return err
		}
		status = http.StatusCreated
	default:
		return err
	}
	token := "opaquelocktoken:" + audit.NewID()
	if held := lockToken.FindString(x.r.Header.Get("If")); held != "" && x.r.ContentLength == 0 {
		token = held // a lock that is renewed keeps its token, or the client thinks it lost
	}
	x.w.Header().Set("Lock-Token", "<"+token+">")
	x.w.Header().Set("Content-Type", "application/xml; charset=utf-8")
	x.w.WriteHeader(status)
	_, _ = io.WriteString(x.w, `<?xml version="1.0" encoding="utf-8"?>`+"\n"+
		`<D:prop xmlns:D="DAV:"><D:lockdiscovery><D:activelock><D:locktype><D:write/></D:locktype><D:lockscope><D:exclusive/></D:lockscope>`+
		`<D:depth>0</D:depth><D:timeout>Second-3600</D:timeout><D:locktoken><D:href>`+token+`</D:href></D:locktoken>`+
		`<D:lockroot><D:href>`+x.href(x.rel, false)+`</D:href></D:lockroot></D:activelock></D:lockdiscovery></D:prop>`)
	return nil
}

// lockToken is a token that lock gave out.
var lockToken = regexp.MustCompile(`opaquelocktoken:[0-9a-f-]{36}`)

func (x *exchange) unlock() error {
	f, _, err := x.l.open(x.rel)
	if err != nil {
		return err
	}
	f.Close()
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

// href is the address of something below the root, percent-encoded, which XML can hold as it is.
func (x *exchange) href(rel string, dir bool) string {
	h := x.prefix
	if x.l.file != "" {
		return h + escapePath(x.l.file)
	}
	if rel == "." {
		return h
	}
	h += escapePath(rel)
	if dir {
		h += "/"
	}
	return h
}

// escapePath percent-encodes all but letters, digits and the marks that no parser minds.
func escapePath(rel string) string {
	var b strings.Builder
	for _, c := range []byte(rel) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', isDigit(c), strings.IndexByte("/-_.~", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			if c < 16 {
				b.WriteByte('0')
			}
			b.WriteString(strings.ToUpper(strconv.FormatUint(uint64(c), 16)))
		}
	}
	return b.String()
}
