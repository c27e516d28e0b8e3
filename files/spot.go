package files

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
)

// spot is the place of a file to come: an open folder that is there, and a path below it whose folders
// may not be there yet. Everything happens inside that open folder, wherever its name leads meanwhile.
type spot struct {
	x   *exchange
	dir *os.Root
	rel string // below dir
	key string // below the share's root, the name in the ledger

	fresh bool // nothing may be here, not even an empty file
}

// spot finds the place of rel, which need not be free.
func (x *exchange) spot(rel string) (*spot, error) {
	switch {
	case rel == "." || reserved(rel):
		return nil, errForbidden
	case strings.Count(rel, "/") >= walkDepth:
		return nil, errBadPath // neither a search nor an archive would come to it
	case x.l.own.look().named(x.l.root, rel):
		return nil, errForbidden
	}
	for parent := path.Dir(rel); ; parent = path.Dir(parent) {
		dir, err := openFolder(x.l.root, parent)
		if err == nil {
			below := rel
			if parent != "." {
				below = rel[len(parent)+1:]
			}
			first, _, _ := strings.Cut(below, "/")
			if err := x.l.own.admits(dir, first); err != nil {
				dir.Close()
				return nil, err
			}
			return &spot{x: x, dir: dir, rel: below, key: rel}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || parent == "." {
			return nil, notFolder(err)
		}
	}
}

// notFolder is why no file can be made below something. A link that leads outside is not there (X5).
func notFolder(err error) error {
	if f := writing(err); f.status != 500 {
		return f
	}
	return errNoFolder
}

func (sp *spot) close() { sp.dir.Close() }

// free says whether a file may come to its place at first sight.
func (sp *spot) free() error { return sp.freeIn(sp.dir, sp.rel) }

// freeIn says whether a file may come to name in dir: nothing is there, or an empty file that an upload
// may replace (some clients make the file first and fill it then).
func (sp *spot) freeIn(dir *os.Root, name string) error {
	info, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return notFolder(err)
	case sp.fresh || !info.Mode().IsRegular() || info.Size() > 0 || sp.x.l.own.hides(info):
		return errExists
	}
	return nil
}

// fill makes the file: write puts its content into a temporary one beside its place, which is then put
// there. Whatever fails leaves nothing.
func (sp *spot) fill(write func(*os.File) error) (err error) {
	tmp := tempMark + rand.Text()
	f, err := sp.dir.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			sp.dir.Remove(tmp)
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return sp.place(tmp, info)
}

// place gives the temporary file its name, in folders that are made for it now. A request that fails
// leaves none of them.
func (sp *spot) place(tmp string, info fs.FileInfo) error {
	sp.x.l.placing.Lock()
	defer sp.x.l.placing.Unlock()
	if sp.x.l.ctx.Err() != nil {
		return errCut
	}
	below := path.Dir(sp.rel)
	way, err := sp.descend(below)
	if err == nil {
		err = sp.settle(way.end(sp.dir), below, tmp, info)
	}
	if err != nil {
		way.undo()
		return err
	}
	way.close()
	sp.x.l.made.add(sp.key, info)
	return nil
}

// settle puts the temporary file into the open folder in, which is below: first under its random name,
// which does no harm wherever a swapped link may lead it, then, seen to be there, under its own. No step
// replaces what is there, so a file that came into being meanwhile stays (X7); an empty one is replaced.
func (sp *spot) settle(in *os.Root, below, tmp string, info fs.FileInfo) (err error) {
	if in != sp.dir {
		moved := path.Join(below, tmp)
		if err := sp.dir.Rename(tmp, moved); err != nil {
			return notFolder(err)
		}
		if found, err := in.Lstat(tmp); err != nil || !os.SameFile(found, info) {
			sp.dir.Remove(moved)
			return errNoFolder
		}
		defer func() {
			if err != nil {
				in.Remove(tmp)
			}
		}()
	}
	name := path.Base(sp.rel)
	if err := sp.x.l.own.admits(in, name); err != nil {
		return err
	}
	if err := in.Link(tmp, name); err == nil {
		in.Remove(tmp)
		return nil
	}
	if err := sp.freeIn(in, name); err != nil {
		return err
	}
	// An empty file is there, or the file system knows no links.
	return in.Rename(tmp, name)
}
