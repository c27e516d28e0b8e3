package files

import (
	"io/fs"
	"os"
	"sync"
)

// ledger knows the files that a share made, which are those that may be appended to (X7), and which of
// them is being appended to.
type ledger struct {
	mu    sync.Mutex
	files map[string]*madeFile // by path below the root
}

type madeFile struct {
	info fs.FileInfo
	busy bool
}

func (g *ledger) add(rel string, info fs.FileInfo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.files == nil {
		g.files = make(map[string]*madeFile)
	}
	g.files[rel] = &madeFile{info: info}
}

// borrow takes the file for one append. ok is false where the share did not make it, busy is true where
// another append is under way.
func (g *ledger) borrow(rel string, opened fs.FileInfo) (giveBack func(), ok, busy bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.files[rel]
	if m == nil || !os.SameFile(m.info, opened) {
		return nil, false, false
	}
	if m.busy {
		return nil, true, true
	}
	m.busy = true
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		m.busy = false
	}, true, false
}
