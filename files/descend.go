package files

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// way is the folders that were opened, and made where they were not there, on the way down to a place.
type way []step

type step struct {
	parent *os.Root
	name   string
	made   bool
	dir    *os.Root
}

// descend opens the folder rel below the spot's, one part at a time, and makes what is missing. Each part
// is judged on the open folder (X5): a link swapped in leads to no place that was not looked at.
func (sp *spot) descend(rel string) (way, error) {
	var w way
	if rel == "." {
		return w, nil
	}
	for name := range strings.SplitSeq(rel, "/") {
		st := step{parent: w.end(sp.dir), name: name}
		if err := sp.x.l.own.admits(st.parent, name); err != nil {
			return w, err
		}
		var err error
		if st.dir, err = openFolder(st.parent, name); errors.Is(err, fs.ErrNotExist) {
			if err = st.parent.Mkdir(name, 0o777); err == nil {
				st.made = true
				st.dir, err = openFolder(st.parent, name)
			} else if errors.Is(err, fs.ErrExist) {
				err = errNoFolder // a link that leads nowhere
			}
		}
		if st.made || err == nil {
			w = append(w, st)
		}
		if err != nil {
			return w, notFolder(err)
		}
	}
	return w, nil
}

// end is the folder at the end of the way, start where nothing lies between.
func (w way) end(start *os.Root) *os.Root {
	if len(w) == 0 {
		return start
	}
	return w[len(w)-1].dir
}

// undo closes the way and removes the folders that were made, as far as they are empty.
func (w way) undo() {
	for i := len(w) - 1; i >= 0; i-- {
		w[i : i+1].close()
		if w[i].made {
			w[i].parent.Remove(w[i].name)
		}
	}
}

func (w way) close() {
	for _, st := range w {
		if st.dir != nil {
			st.dir.Close()
		}
	}
}
