package files

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
)

// spot is the place of a file to come: an open folder that is there, and a path below it whose folders
// may not be there yet. Everything happens inside that open folder, wherever its name leads meanwhile.
type spot struct {
	x   *exchange
	dir *os.Root
	rel string // below dir
	key string // below the share's root, the name in the ledger
	own ownView

	fresh bool // nothing may be here, not even an empty file
}

// spot finds the place of rel, which need not be free.
func (x *exchange) spot(rel string) (*spot, error) {
	if rel == "." || reserved(rel) {
		return nil, errForbidden
	}
	v := x.l.own.look()
	if v.named(x.l.root, rel) {
		return nil, errForbidden
	}
	for parent := path.Dir(rel); ; parent = path.Dir(parent) {
		dir, err := x.l.root.OpenRoot(parent)
		if err == nil {
			below := rel
			if parent != "." {
				below = rel[len(parent)+1:]
			}
			sp := &spot{x: x, dir: dir, rel: below, key: rel, own: v}
			if info, err := dir.Stat("."); err != nil || v.hides(info) {
				sp.close()
				return nil, errForbidden
			}
			return sp, nil
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

// free says whether a file may come here: nothing is here, or an empty file that an upload may replace
// (some clients make the file first and fill it then).
func (sp *spot) free() error {
	info, err := sp.dir.Lstat(sp.rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return notFolder(err)
	case sp.fresh || !info.Mode().IsRegular() || info.Size() > 0 || sp.own.hides(info):
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

// place gives the temporary file its name. A link never replaces what is there, so a file that came
// into being meanwhile stays (X7); an empty one is replaced.
func (sp *spot) place(tmp string, info fs.FileInfo) error {
	sp.x.l.placing.Lock()
	defer sp.x.l.placing.Unlock()
	if sp.x.l.ctx.Err() != nil {
		return errCut
	}
	made, err := makeDirs(sp.dir, path.Dir(sp.rel))
	if err == nil {
		err = sp.dir.Link(tmp, sp.rel)
		if err == nil {
			sp.dir.Remove(tmp)
		} else if free := sp.free(); free != nil {
			err = free
		} else {
			// An empty file is there, or the file system knows no links.
			err = sp.dir.Rename(tmp, sp.rel)
		}
	}
	if err != nil {
		for i := len(made) - 1; i >= 0; i-- {
			sp.dir.Remove(made[i])
		}
		return err
	}
	sp.x.l.made.add(sp.key, info)
	return nil
}

// makeDirs makes the folder rel with its parents and returns those that were not there before.
func makeDirs(dir *os.Root, rel string) (made []string, err error) {
	if rel == "." {
		return nil, nil
	}
	if made, err = makeDirs(dir, path.Dir(rel)); err != nil {
		return made, err
	}
	err = dir.Mkdir(rel, 0o777)
	if err == nil {
		return append(made, rel), nil
	}
	if info, serr := dir.Stat(rel); serr == nil && info.IsDir() {
		return made, nil
	}
	if errors.Is(err, fs.ErrExist) {
		err = errNoFolder
	}
	return made, err
}
