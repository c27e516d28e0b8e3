package files

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"syscall"
	"time"
)

// fault is an answer other than success: its status, what the caller reads, and why, for the log.
type fault struct {
	status int
	text   string
	cause  error
}

func (f *fault) Error() string { return f.text }
func (f *fault) Unwrap() error { return f.cause }

var (
	errNotFound   = &fault{status: http.StatusNotFound, text: "Not Found"}
	errForbidden  = &fault{status: http.StatusForbidden, text: "Forbidden"}
	errBadPath    = &fault{status: http.StatusBadRequest, text: "Invalid Path"}
	errExists     = &fault{status: http.StatusForbidden, text: "Forbidden: a file with content is there, and nothing is overwritten through a share"}
	errReadOnly   = &fault{status: http.StatusForbidden, text: "Forbidden: this share takes no uploads"}
	errNoFolder   = &fault{status: http.StatusConflict, text: "Conflict: a part of the path is not a folder"}
	errCut        = &fault{status: http.StatusNotFound, text: "Not Found: the share has ended"}
	errBrokenBody = &fault{status: http.StatusBadRequest, text: "the request body broke off; nothing was kept"}
	errTooLarge   = &fault{status: http.StatusRequestEntityTooLarge, text: tooLarge}
)

// tooLarge is the body of a 413, the same as on the bridge's other routes (H3).
const tooLarge = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"request body too large"}}`

// reading turns the error of opening or reading something into an answer. What is outside, gone or of
// a kind that is not served is all the same to a caller: not there.
func reading(err error) *fault {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return errForbidden
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM):
		return &fault{http.StatusInternalServerError, "Internal Server Error", err}
	}
	return errNotFound
}

// writing turns the error of making or filling something into an answer.
func writing(err error) *fault {
	var f *fault
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return &fault{http.StatusForbidden, "Forbidden: the operating system does not allow it", err}
	case errors.Is(err, fs.ErrExist):
		return errExists
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ELOOP):
		return errNoFolder
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL):
		return errBadPath
	case errors.Is(err, syscall.ENOSPC):
		return &fault{http.StatusInsufficientStorage, "Insufficient Storage: the disk is full; nothing was kept", err}
	}
	return &fault{http.StatusInternalServerError, "Internal Server Error", err}
}

// fail answers err. A body that nobody has read is read off first: a client that sends all of it before
// it looks for the answer would otherwise see a broken connection instead (H3).
func (x *exchange) fail(err error) {
	f := writing(err)
	if x.l != nil && x.l.ctx.Err() != nil && f.status != http.StatusNotFound {
		f = errCut
	}
	if f.status == http.StatusInternalServerError && x.s.o.Log != nil {
		x.s.o.Log.Error("file route failed", "method", x.r.Method, "error", f.cause)
	}
	h := x.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	for _, name := range []string{"Content-Length", "Content-Disposition", "ETag", "Last-Modified", "Accept-Ranges"} {
		h.Del(name)
	}
	if f == errTooLarge {
		h.Set("Content-Type", "application/json")
	}
	linger := x.lingers()
	if linger {
		h.Set("Connection", "close")
	}
	x.w.WriteHeader(f.status)
	_, _ = io.WriteString(x.w, f.text)
	if linger {
		x.linger()
	}
}

const (
	lingerBytes = 256 << 20
	lingerTime  = 5 * time.Second
	// smallBody is what net/http reads off by itself.
	smallBody = 200 << 10
)

// lingers says that a body is on its way that this client will finish whatever the answer is. One that
// asked with Expect: 100-continue never began.
func (x *exchange) lingers() bool {
	if x.r.Header.Get("Expect") != "" && !x.begun {
		return false
	}
	return x.r.ContentLength < 0 || x.r.ContentLength > smallBody
}

func (x *exchange) linger() {
	rc := http.NewResponseController(x.w)
	if rc.Flush() != nil || rc.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	if x.l != nil && x.l.ctx.Err() != nil {
		return // the deadline of the share's end may just have been overwritten
	}
	_, _ = io.CopyN(io.Discard, x.r.Body, lingerBytes)
}

// brokenBody tells why reading a request's body ended early.
func (x *exchange) brokenBody(err error) error {
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return errTooLarge
	case x.l.ctx.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded):
		return errCut
	}
	return &fault{errBrokenBody.status, errBrokenBody.text, err}
}
