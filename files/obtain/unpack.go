package obtain

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// maxBinary bounds what is unpacked: the binary, and all of a .tar.gz together. The largest pinned binary
// has 55 MB.
const maxBinary = 128 << 20

var errBinaryTooLarge = errors.New("the archive unpacks to more than is allowed")

// unpack returns the one file named binary of an archive, which file's name tells the kind of. The
// archive's digest has been checked by then; it is judged all the same, as it came from outside. Nothing
// touches the disk, and no more than limit bytes are unpacked.
func unpack(file string, data []byte, binary string, limit int64) ([]byte, error) {
	var content []byte
	var err error
	switch {
	case strings.HasSuffix(file, ".tar.gz"), strings.HasSuffix(file, ".tgz"):
		content, err = untar(data, binary, limit)
	case strings.HasSuffix(file, ".zip"):
		content, err = unzip(data, binary, limit)
	default:
		err = errors.New("it is no kind of archive that is known")
	}
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	return content, nil
}

// entries judges the entries of an archive one by one.
type entries struct {
	binary string
	seen   bool
}

// wanted says whether an entry is the binary. An entry that would leave the folder if it were written,
// that is no file or folder, or that names the binary a second time condemns the archive.
func (e *entries) wanted(name string, mode fs.FileMode) (bool, error) {
	switch {
	case name == "" || path.IsAbs(name) || strings.ContainsAny(name, "\\:\x00") || slices.Contains(strings.Split(name, "/"), ".."):
		return false, fmt.Errorf("the entry %q leaves the folder", name)
	case !mode.IsRegular() && !mode.IsDir():
		return false, fmt.Errorf("the entry %q is a link or a special file", name)
	case path.Clean(name) != e.binary || mode.IsDir():
		return false, nil
	case e.seen:
		return false, fmt.Errorf("the entry %q is there twice", e.binary)
	}
	e.seen = true
	return true, nil
}

func (e *entries) missing() error {
	if e.seen {
		return nil
	}
	return fmt.Errorf("there is no %q in it", e.binary)
}

// untar reads the whole archive: whatever comes after the binary is judged too.
func untar(data []byte, binary string, limit int64) ([]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	archive := tar.NewReader(&bounded{unzipped, limit})
	list := entries{binary: binary}
	var content []byte
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return content, list.missing()
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			continue // metadata with a name that is no file's
		}
		mode := header.FileInfo().Mode()
		if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir {
			mode |= fs.ModeIrregular // a hard link has the mode of a file
		}
		wanted, err := list.wanted(header.Name, mode)
		if err == nil && wanted {
			content, err = readAll(archive, header.Size, limit)
		}
		if err != nil {
			return nil, err
		}
	}
}

func unzip(data []byte, binary string, limit int64) ([]byte, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	list := entries{binary: binary}
	var found *zip.File
	for _, entry := range archive.File {
		wanted, err := list.wanted(entry.Name, entry.Mode())
		if err != nil {
			return nil, err
		}
		if wanted {
			found = entry
		}
	}
	if err := list.missing(); err != nil {
		return nil, err
	}
	if found.UncompressedSize64 > uint64(limit) {
		return nil, errBinaryTooLarge
	}
	content, err := found.Open()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	return readAll(content, int64(found.UncompressedSize64), limit)
}

// readAll reads the content of an entry that says to have size bytes. Room is made as they come: a size
// may lie.
func readAll(r io.Reader, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, errBinaryTooLarge
	}
	content, err := io.ReadAll(io.LimitReader(r, size+1))
	if err == nil && int64(len(content)) != size {
		err = fmt.Errorf("the entry says to have %d bytes and has not", size)
	}
	return content, err
}

// bounded ends with an error where io.LimitedReader would end as if there were no more.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errBinaryTooLarge
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
