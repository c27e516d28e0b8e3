package files

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// own keeps the bridge's own files out of a share (X5). A file is recognised in two ways: by its place,
// which also covers names not there yet and the temporary names beside one, and by its identity, which
// covers every link that leads to it. The identities of the look before are kept for one more look: a
// file that is replaced between being opened and being compared is still known. Those before that count
// for what has not changed since: a hard link to a replaced configuration may hold the token that is
// still in force, while a new file that the system gives the same number has another time.
type own struct {
	paths func() []string

	mu   sync.Mutex
	last []fs.FileInfo
	past []fs.FileInfo // replaced or gone, the newest maxPast
}

const maxPast = 64

// ownView is one look at where the bridge's files are and what they are.
type ownView struct {
	places []ownPlace
	files  []fs.FileInfo // now and at the look before
	past   []fs.FileInfo // earlier
}

type ownPlace struct {
	dir  fs.FileInfo
	base string
}

// ownDepth bounds how far into the bridge's own folders a look goes; they are flat.
const ownDepth = 3

// look must come after the handle to compare was opened.
func (o *own) look() ownView {
	if o.paths == nil {
		return ownView{}
	}
	var v ownView
	var parent string
	var dir fs.FileInfo
	for _, p := range o.paths() {
		if d := filepath.Dir(p); d != parent {
			parent = d
			dir, _ = os.Stat(d)
		}
		if dir == nil {
			continue
		}
		v.places = append(v.places, ownPlace{dir, filepath.Base(p)})
		info, err := os.Stat(p)
		if err != nil {
			continue
		}
		v.files = append(v.files, info)
		if info.IsDir() {
			v.files = append(v.files, inside(p, ownDepth)...)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := v.files
	for _, f := range o.last {
		if !holds(now, f) && !holds(o.past, f) {
			o.past = append(slices.Clone(o.past[max(0, len(o.past)-maxPast+1):]), f)
		}
	}
	v.files = append(append([]fs.FileInfo(nil), now...), o.last...)
	v.past = o.past
	o.last = now
	return v
}

// inside is everything in one of the bridge's own folders.
func inside(dir string, depth int) []fs.FileInfo {
	var all []fs.FileInfo
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		all = append(all, info)
		if e.IsDir() && depth > 1 {
			all = append(all, inside(filepath.Join(dir, e.Name()), depth-1)...)
		}
	}
	return all
}

// hides says that info is one of the bridge's files or folders, by identity.
func (v ownView) hides(info fs.FileInfo) bool {
	if holds(v.files, info) {
		return true
	}
	for _, f := range v.past {
		if os.SameFile(f, info) && f.ModTime().Equal(info.ModTime()) && f.Size() == info.Size() {
			return true
		}
	}
	return false
}

func holds(files []fs.FileInfo, info fs.FileInfo) bool {
	return slices.ContainsFunc(files, func(f fs.FileInfo) bool { return os.SameFile(f, info) })
}

// namesIn are the bridge's names in the folder dir, nil in nearly every folder.
func (v ownView) namesIn(dir fs.FileInfo) []string {
	var names []string
	for _, p := range v.places {
		if os.SameFile(p.dir, dir) {
			names = append(names, p.base)
		}
	}
	return names
}

// named says that some part of rel is a place of the bridge's, whether anything is there or not.
func (v ownView) named(root *os.Root, rel string) bool {
	for ; rel != "."; rel = path.Dir(rel) {
		if anyBridge(path.Base(rel)) {
			return true
		}
		for _, p := range v.places {
			if !ownName(path.Base(rel), p.base) {
				continue
			}
			if dir, err := root.Stat(path.Dir(rel)); err == nil && os.SameFile(dir, p.dir) {
				return true
			}
		}
	}
	return false
}

// anyBridge says that name is one that bridges give to their files, or an editor's copy of a
// configuration: it is hidden in whatever folder it stands. What another bridge of this user keeps there,
// that of another profile say, is a token as well.
func anyBridge(name string) bool {
	return strings.Contains(strings.ToLower(name), "a2mcp.json") ||
		ownName(name, "a2mcp.log") || ownName(name, "a2mcp.run") || ownName(name, "a2mcp.installs.json")
}

// namesBridge says that some part of a path with slashes is such a name.
func namesBridge(path string) bool { return slices.ContainsFunc(strings.Split(path, "/"), anyBridge) }

// ownName says that name is the own name base, or stands beside it as generations (a2mcp.log.1),
// temporary files (.a2mcp.json.123) and editors' copies (a2mcp.json~) do.
func ownName(name, base string) bool {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		name, base = strings.ToLower(name), strings.ToLower(base)
	}
	rest, ok := strings.CutPrefix(name, base)
	if !ok {
		rest, ok = strings.CutPrefix(strings.TrimPrefix(name, "."), base)
	}
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '~')
}

// hides is look and compare in one.
func (o *own) hides(info fs.FileInfo) bool { return o.look().hides(info) }

// admits says that something may be made under name in the open folder dir.
func (o *own) admits(dir *os.Root, name string) error {
	info, err := dir.Stat(".")
	if err != nil {
		return notFolder(err)
	}
	if v := o.look(); v.hides(info) || anyOwn(name, v.namesIn(info)) {
		return errForbidden
	}
	return nil
}

// covers says that a real path lies in one of the bridge's own folders.
func (o *own) covers(real string) bool {
	v := o.look()
	for p := real; ; p = filepath.Dir(p) {
		if info, err := os.Stat(p); err == nil && v.hides(info) {
			return true
		}
		if p == filepath.Dir(p) {
			return false
		}
	}
}

// within says that one of the bridge's files lies in or below the folder root.
func (o *own) within(root *os.Root) bool {
	top, err := root.Stat(".")
	if err != nil {
		return true
	}
	for _, p := range o.paths() {
		if real, err := filepath.EvalSymlinks(filepath.Dir(p)); err == nil {
			p = filepath.Join(real, filepath.Base(p))
		}
		for d := filepath.Dir(p); ; d = filepath.Dir(d) {
			if info, err := os.Stat(d); err == nil && os.SameFile(info, top) {
				return true
			}
			if d == filepath.Dir(d) {
				break
			}
		}
	}
	return false
}
