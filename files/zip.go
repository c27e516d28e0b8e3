package files

import (
	"archive/zip"
	"compress/flate"
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"strings"
)

// maxComment keeps the list of what was left out inside a zip's comment, which holds 65,535 bytes.
const maxComment = 60_000

// zip sends the folder as an archive, made as it goes. It holds regular files only; what could not be
// read is named in the archive's comment. An archive that breaks off is cut in mid-stream, so that no
// caller takes a part of it for the whole.
func (x *exchange) zip() error {
	name := path.Base(x.rel)
	if x.rel == "." {
		name = filepath.Base(x.l.real)
	}
	h := x.w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", disposition("attachment", name+".zip"))
	if x.r.Method == http.MethodHead {
		return nil
	}
	z := zip.NewWriter(x.w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestSpeed)
	})
	var left strings.Builder
	skip := func(rel string) {
		if left.Len() < maxComment {
			left.WriteString("not readable: " + printable(rel) + "\n")
		}
	}
	err := x.walk(x.l.own.look(), x.rel, func(e entry) error {
		if e.Dir {
			return nil
		}
		return x.zipFile(z, e, skip)
	}, skip)
	if err == nil {
		err = z.SetComment(left.String())
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return nil
}

func (x *exchange) zipFile(z *zip.Writer, e entry, skip func(string)) error {
	f, info, err := x.l.open(path.Join(x.rel, e.Name))
	if err != nil {
		skip(e.Name)
		return nil
	}
	defer f.Close()
	if info.IsDir() {
		return nil
	}
	head := &zip.FileHeader{
		// Some programs take a backslash for a separator when they unpack.
		Name: strings.ReplaceAll(e.Name, `\`, "_"), Method: zip.Deflate, Modified: info.ModTime(),
	}
	head.SetMode(info.Mode())
	w, err := z.CreateHeader(head)
	if err != nil {
		return err
	}
	return copyUntil(x.ctx, w, f)
}

// copyChunk is how much is copied between two looks at whether to go on.
const copyChunk = 4 << 20

// copyUntil copies r to w as long as ctx is not done.
func copyUntil(ctx context.Context, w io.Writer, r io.Reader) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := io.CopyN(w, r, copyChunk); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
