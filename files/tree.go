package files

import (
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// tempMark begins the name of a file that is still being written. Such names are never listed, read or
// taken from a caller.
const tempMark = ".a2mcp-upload-"

func reserved(rel string) bool {
	for part := range strings.SplitSeq(rel, "/") {
		if strings.HasPrefix(part, tempMark) {
			return true
		}
	}
	return false
}

// open opens a file or folder for reading. Nothing else is ever opened, and the opening does not wait:
// a pipe swapped in after the look does not hang it.
func (l *live) open(rel string) (*os.File, fs.FileInfo, error) {
	if reserved(rel) {
		return nil, nil, errNotFound
	}
	info, err := l.root.Stat(rel)
	if err != nil {
		return nil, nil, reading(err)
	}
	if !served(info) {
		return nil, nil, errNotFound
	}
	if l.file != "" {
		// A single file was shared, not what a link in its place points at.
		if info, err = l.root.Lstat(rel); err != nil || !info.Mode().IsRegular() {
			return nil, nil, errNotFound
		}
	}
	f, err := l.root.OpenFile(rel, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, reading(err)
	}
	opened, err := f.Stat()
	if err == nil && (!served(opened) || l.file != "" && !os.SameFile(info, opened)) {
		err = errNotFound
	}
	if err == nil {
		if v := l.own.look(); v.hides(opened) || v.named(l.root, rel) {
			err = errNotFound
		}
	}
	if err != nil {
		f.Close()
		return nil, nil, reading(err)
	}
	return f, opened, nil
}

// openFolder opens a folder below root. The dot makes the system open what is before it as a folder only:
// opening a pipe by its bare name would wait for a writer.
func openFolder(root *os.Root, rel string) (*os.Root, error) { return root.OpenRoot(rel + "/.") }

// served says that something is of a kind that a share shows: no pipe, device or socket.
func served(info fs.FileInfo) bool { return info.IsDir() || info.Mode().IsRegular() }

// entry is one line of a listing.
type entry struct {
	Type  string `json:"path_type"` // Dir, SymlinkDir, File or SymlinkFile
	Name  string `json:"name"`      // in search results the path below the folder that was searched
	Mtime int64  `json:"mtime"`     // milliseconds since 1970
	Size  int64  `json:"size"`      // bytes of a file, entries of a folder (at most dirCount)
	Dir   bool   `json:"-"`
	info  fs.FileInfo
}

func newEntry(name string, info fs.FileInfo, link bool) entry {
	e := entry{Type: "File", Name: name, Mtime: info.ModTime().UnixMilli(), Dir: info.IsDir(), info: info}
	if e.Dir {
		e.Type = "Dir"
	} else {
		e.Size = info.Size()
	}
	if link {
		e.Type = "Symlink" + e.Type
	}
	return e
}

// readDir calls each for what a share shows of the folder rel, in no order. What cannot be looked at,
// leads outside or is of another kind is left out.
func (l *live) readDir(v ownView, dir *os.File, rel string, each func(entry) error) error {
	info, err := dir.Stat()
	if err != nil {
		return err
	}
	ownNames := v.namesIn(info)
	for {
		batch, err := dir.ReadDir(512)
		for _, d := range batch {
			if reserved(d.Name()) || anyOwn(d.Name(), ownNames) {
				continue
			}
			info, err := d.Info()
			if err != nil {
				continue
			}
			link := info.Mode()&fs.ModeSymlink != 0
			if link {
				if info, err = l.root.Stat(path.Join(rel, d.Name())); err != nil {
					continue
				}
			}
			if !served(info) || v.hides(info) {
				continue
			}
			if err := each(newEntry(d.Name(), info, link)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return reading(err)
		}
	}
}

func anyOwn(name string, bases []string) bool {
	return anyBridge(name) || slices.ContainsFunc(bases, func(base string) bool { return ownName(name, base) })
}

// dirCount is where counting the entries of a folder ends.
const dirCount = 1000

// count is the number of entries of the folder rel, as a listing of its parent shows it.
func (l *live) count(v ownView, rel string) int64 {
	f, err := l.root.OpenFile(rel, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.IsDir() {
		return 0
	}
	ownNames := v.namesIn(info)
	names, _ := f.Readdirnames(dirCount + len(ownNames))
	n := 0
	for _, name := range names {
		if !reserved(name) && !anyOwn(name, ownNames) {
			n++
		}
	}
	return int64(min(n, dirCount))
}

// walkDepth is how many folders deep searching and zipping go.
const walkDepth = 200

// walk calls each for every file and folder below rel, the paths being relative to rel. It follows no
// link to a folder, so it comes to an end; a folder that cannot be read is passed to skip.
func (x *exchange) walk(v ownView, rel string, each func(entry) error, skip func(rel string)) error {
	type folder struct {
		below string
		depth int
	}
	todo := []folder{{"", 0}}
	for len(todo) > 0 {
		d := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		full := path.Join(rel, d.below)
		f, info, err := x.l.open(full)
		if err != nil || !info.IsDir() {
			if err == nil {
				f.Close()
			}
			skip(d.below)
			continue
		}
		err = x.l.readDir(v, f, full, func(e entry) error {
			if err := x.ctx.Err(); err != nil {
				return err
			}
			e.Name = path.Join(d.below, e.Name)
			if e.Type == "Dir" && d.depth < walkDepth {
				todo = append(todo, folder{e.Name, d.depth + 1})
			}
			return each(e)
		})
		f.Close()
		if x.ctx.Err() != nil {
			return x.ctx.Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
