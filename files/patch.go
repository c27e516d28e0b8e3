package files

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// patch appends to a file that this share made (X7): `X-Update-Range: append`, or `bytes=N-` with N the
// length that is there. Where it breaks, the file has the length it had (X5).
func (x *exchange) patch() error {
	where := x.r.Header.Get("X-Update-Range")
	if where == "" {
		x.w.Header().Set("Allow", x.allow())
		return &fault{status: http.StatusMethodNotAllowed, text: "PATCH needs the header X-Update-Range: append"}
	}
	f, err := x.openAppend()
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	giveBack, ok, busy := x.l.made.borrow(x.rel, info)
	switch {
	case !ok:
		return &fault{status: http.StatusForbidden, text: "Forbidden: only a file that was uploaded to this share can be appended to"}
	case busy:
		return &fault{status: http.StatusConflict, text: "Conflict: another request is appending to this file"}
	}
	defer giveBack()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if err := appendsAt(where, size); err != nil {
		return err
	}
	if err := x.receive(f); err != nil {
		if terr := f.Truncate(size); terr != nil {
			return &fault{http.StatusInternalServerError, "Internal Server Error", terr}
		}
		return err
	}
	if now, err := x.l.root.Stat(x.rel); err != nil || !os.SameFile(info, now) {
		return &fault{status: http.StatusConflict, text: "Conflict: the file was replaced while it was being appended to"}
	}
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

// openAppend opens the file for writing, under the rules of reading.
func (x *exchange) openAppend() (*os.File, error) {
	r, info, err := x.l.open(x.rel)
	if err != nil {
		return nil, err
	}
	r.Close()
	if info.IsDir() {
		return nil, errForbidden
	}
	f, err := x.l.root.OpenFile(x.rel, os.O_WRONLY|nonblock, 0)
	if err != nil {
		if f := writing(err); f.status != http.StatusInternalServerError {
			return nil, f
		}
		return nil, reading(err) // a link to the outside was swapped in
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(info, opened) {
		f.Close()
		return nil, errNotFound
	}
	return f, nil
}

// appendsAt says whether an X-Update-Range asks for the end of a file of that size.
func appendsAt(where string, size int64) error {
	if where == "append" {
		return nil
	}
	first, ok := strings.CutPrefix(where, "bytes=")
	if ok {
		first, ok = strings.CutSuffix(first, "-")
	}
	at, err := strconv.ParseInt(first, 10, 64)
	switch {
	case !ok || err != nil || at < 0:
		return &fault{status: http.StatusBadRequest, text: "X-Update-Range is append, or bytes=N- with N the file's length"}
	case at < size:
		return &fault{status: http.StatusForbidden, text: "Forbidden: the file is longer than that, and nothing is overwritten through a share"}
	case at > size:
		return &fault{status: http.StatusBadRequest, text: "the file is shorter than that: ask for its length with HEAD and go on from there"}
	}
	return nil
}
