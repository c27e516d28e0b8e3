package files

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
)

// put takes a new file: 201, or 403 where something with content is. It stands in its place whole or
// not at all (X5, X7).
func (x *exchange) put() error {
	if x.r.Header.Get("Content-Range") != "" {
		return &fault{status: http.StatusBadRequest, text: "PUT takes whole files; send pieces with PATCH and X-Update-Range: append"}
	}
	sp, err := x.spot(x.rel)
	if err != nil {
		return err
	}
	defer sp.close()
	if err := sp.free(); err != nil {
		return err
	}
	if err := sp.fill(func(f *os.File) error { return x.receive(f) }); err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusCreated)
	return nil
}

var buffers = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }}

// receive copies the request's body to w in large steps and says what broke, the body or the disk.
func (x *exchange) receive(w io.Writer) error {
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	for {
		got, err := x.Read(*b)
		if got > 0 {
			if _, err := w.Write((*b)[:got]); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return x.brokenBody(err)
		}
	}
}
