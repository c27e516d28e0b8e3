package files

import (
	"bufio"
	"encoding/xml"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"strconv"
)

// propfind lists a file, a folder, or a folder with what is in it. Every client gets the same
// properties, whatever it asked for, as from dufs.
func (x *exchange) propfind() error {
	depth := x.r.Header.Get("Depth")
	if depth != "" && depth != "0" && depth != "1" {
		return &fault{status: http.StatusBadRequest, text: "Depth is 0 or 1"}
	}
	f, info, err := x.l.open(x.rel)
	if err != nil {
		return err
	}
	defer f.Close()
	name := path.Base(x.rel)
	if x.rel == "." {
		name = filepath.Base(x.l.real)
	}
	self := newEntry(name, info, false)

	// The folder is read before the answer begins, so that an error is one.
	var entries []entry
	if info.IsDir() && depth != "0" {
		err := x.l.readDir(x.l.own.look(), f, x.rel, func(e entry) error {
			entries = append(entries, e)
			return x.ctx.Err()
		})
		if err != nil {
			return err
		}
		order(entries, "", "")
	}
	w := x.multistatus()
	x.response(w, self, x.rel)
	for _, e := range entries {
		x.response(w, e, path.Join(x.rel, e.Name))
	}
	_, _ = io.WriteString(w, "</D:multistatus>")
	_ = w.Flush()
	return nil
}

// proppatch refuses each change politely; of a folder it knows nothing, as dufs.
func (x *exchange) proppatch() error {
	f, info, err := x.l.open(x.rel)
	if err != nil {
		return err
	}
	f.Close()
	if info.IsDir() {
		return errNotFound
	}
	w := x.multistatus()
	_, _ = io.WriteString(w, "<D:response><D:href>"+x.href(x.rel, false)+"</D:href><D:propstat><D:prop></D:prop>"+
		"<D:status>HTTP/1.1 403 Forbidden</D:status></D:propstat></D:response></D:multistatus>")
	_ = w.Flush()
	return nil
}

func (x *exchange) multistatus() *bufio.Writer {
	x.w.Header().Set("Content-Type", "application/xml; charset=utf-8")
	x.w.WriteHeader(http.StatusMultiStatus)
	w := bufio.NewWriterSize(x.w, 32<<10)
	_, _ = io.WriteString(w, `<?xml version="1.0" encoding="utf-8" ?>`+"\n"+`<D:multistatus xmlns:D="DAV:">`+"\n")
	return w
}

func (x *exchange) response(w *bufio.Writer, e entry, rel string) {
	_, _ = io.WriteString(w, "<D:response>\n<D:href>"+x.href(rel, e.Dir)+"</D:href>\n<D:propstat>\n<D:prop>\n<D:displayname>")
	_ = xml.EscapeText(w, []byte(e.Name))
	_, _ = io.WriteString(w, "</D:displayname>\n")
	if !e.Dir {
		_, _ = io.WriteString(w, "<D:getcontentlength>"+strconv.FormatInt(e.Size, 10)+"</D:getcontentlength>\n")
	}
	_, _ = io.WriteString(w, "<D:getlastmodified>"+e.info.ModTime().UTC().Format(http.TimeFormat)+"</D:getlastmodified>\n<D:resourcetype>")
	if e.Dir {
		_, _ = io.WriteString(w, "<D:collection/>")
	}
	_, _ = io.WriteString(w, "</D:resourcetype>\n</D:prop>\n<D:status>HTTP/1.1 200 OK</D:status>\n</D:propstat>\n</D:response>\n")
}
