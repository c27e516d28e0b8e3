package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"unicode/utf8"
)

// fileCSP is the policy of everything but the listing: no script, no origin, nothing from elsewhere. A
// document without an origin sends no referrer whatever it says of itself, so not even a hostile page
// can tell another site the link it was opened by (X10).
const fileCSP = "sandbox; default-src 'none'; img-src 'self' data:; media-src 'self' data:; " +
	"style-src 'self' 'unsafe-inline' data:; font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// get answers GET and HEAD.
func (x *exchange) get() error {
	f, info, err := x.l.open(x.rel)
	if err != nil {
		// A folder that an upload would make is listed as empty.
		if errors.Is(err, errNotFound) && x.slash && x.write && !x.asksForData() {
			return x.missingFolder()
		}
		return err
	}
	defer f.Close()
	switch {
	case info.IsDir():
		return x.getFolder(f)
	case x.flag("json"):
		return x.sendJSON(newEntry(x.rel, info, x.isLink()))
	case x.flag("hash"):
		return x.hash(f)
	}
	return x.sendFile(f, info)
}

// asksForData says that a request wants something that a folder that is not there does not have.
func (x *exchange) asksForData() bool { return x.flag("hash") || x.flag("zip") }

// missingFolder is dufs's answer where uploads are taken and the URL ends with a slash. A name that is
// taken by something a share does not show stays not found.
func (x *exchange) missingFolder() error {
	if _, err := x.l.root.Lstat(x.rel); !errors.Is(err, fs.ErrNotExist) || reserved(x.rel) ||
		x.l.own.look().named(x.l.root, x.rel) {
		return errNotFound
	}
	return x.sendListing(nil, false)
}

func (x *exchange) isLink() bool {
	info, err := x.l.root.Lstat(x.rel)
	return err == nil && info.Mode()&fs.ModeSymlink != 0
}

// sendFile sends a file or the ranges of it that were asked for. The file itself goes to the response,
// in no wrapper, so that the kernel copies it to the socket.
func (x *exchange) sendFile(f *os.File, info fs.FileInfo) error {
	name := path.Base(x.rel)
	h := x.w.Header()
	h.Set("Content-Type", contentType(name, f))
	h.Set("Content-Disposition", disposition("inline", name))
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", fmt.Sprintf(`"%d-%d"`, info.ModTime().UnixMilli(), info.Size()))
	r := x.r
	if ranges := r.Header.Get("Range"); ranges != "" && !rangesOK(ranges, info.Size()) {
		// Conditions are judged before ranges, so the refusal is left to the one who judges them: a
		// range that begins at the end is 416, and of an empty file it is the whole.
		r = r.Clone(r.Context())
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", info.Size()))
	}
	defer cork(r.Context(), info.Size())()
	http.ServeContent(x.w, r, name, info.ModTime(), f)
	return nil
}

// hash sends the SHA-256 of a file.
func (x *exchange) hash(f *os.File) error {
	x.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if x.r.Method == http.MethodHead {
		return nil
	}
	h := sha256.New()
	if err := copyUntil(x.ctx, h, f); err != nil {
		return reading(err)
	}
	_, _ = io.WriteString(x.w, hex.EncodeToString(h.Sum(nil)))
	return nil
}

// contentType goes by the name; what is text says so, and its encoding where that is plain.
func contentType(name string, f io.ReaderAt) string {
	buf := make([]byte, 1024)
	n, _ := f.ReadAt(buf, 0)
	buf = buf[:n]
	text := bytes.IndexByte(buf, 0) < 0
	utf := text && validStart(buf)
	t, params, err := mime.ParseMediaType(mime.TypeByExtension(strings.ToLower(path.Ext(name))))
	if err != nil {
		if t = "application/octet-stream"; utf {
			t = "text/plain"
		}
	}
	delete(params, "charset")
	if utf && (strings.HasPrefix(t, "text/") || strings.HasSuffix(t, "/javascript") || strings.HasSuffix(t, "/json")) {
		if params == nil {
			params = map[string]string{}
		}
		params["charset"] = "utf-8"
	}
	return mime.FormatMediaType(t, params)
}

// validStart says that b is UTF-8, but for a character that its end may have cut.
func validStart(b []byte) bool {
	for cut := 0; cut < utf8.UTFMax && cut <= len(b); cut++ {
		if utf8.Valid(b[:len(b)-cut]) {
			return true
		}
	}
	return false
}

// disposition is a Content-Disposition with the name in both of its spellings.
func disposition(kind, name string) string {
	plain := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return '_'
		}
		return c
	}, name)
	d := kind + `; filename="` + plain + `"`
	if plain != name {
		d += "; filename*=UTF-8''" + strings.ReplaceAll(url.QueryEscape(strings.ToValidUTF8(name, "\uFFFD")), "+", "%20")
	}
	return d
}
