package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

var (
	errStopped = errors.New("sharing was ended while the share was being opened")
	errOff     = errors.New("file sharing is switched off — the operator can set xfer.access in the configuration")
	errOwn     = errors.New("it belongs to the bridge itself")
)

const noTunnel = "no public address — `/a2mcp tunnel` is closed; use an SSH port forward to the bridge port, or ask the operator to run `/a2mcp tunnel`"

// runShare is X1.
func (s *Share) runShare(ctx context.Context, sid string, args []byte) (string, bool) {
	req, err := parseRequest(args)
	if err != nil {
		return err.Error(), true
	}
	s.mu.Lock()
	epoch := s.epoch
	s.mu.Unlock()
	s.acting.Lock()
	defer s.acting.Unlock()

	l, err := s.open(ctx, req, sid, epoch)
	if err != nil {
		return err.Error(), true
	}
	old, err := s.begin(l, sid, epoch)
	if old != nil {
		old.close()
	}
	if err != nil {
		l.close()
		return fmt.Sprintf("cannot serve %s: %v", l.path, err), true
	}
	return s.result(l, old != nil), false
}

// open looks at the path and starts what is to serve it; the share is not in its place yet.
func (s *Share) open(ctx context.Context, req request, sid string, epoch int) (*live, error) {
	l := &live{path: s.o.expand(req.path), ttl: req.ttl, readOnly: req.readOnly}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	err := s.openPath(l)
	if err == nil && s.o.Child != nil {
		err = s.openChild(ctx, l, sid, epoch)
		if err != nil {
			l.close()
			return nil, err // the child's own words
		}
	}
	if err == nil && req.browser {
		if l.child != nil {
			err = errors.New("a browser link needs the built-in file server, and xfer.server is dufs")
		} else {
			l.secret = newSecret()
		}
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("cannot serve %s: %w", l.path, err)
	}
	l.started = time.Now()
	l.expires = l.started.Add(l.ttl)
	return l, nil
}

// openPath finds out what the path is and opens its root.
func (s *Share) openPath(l *live) error {
	if s.o.Access() == Off {
		return errOff
	}
	real, err := filepath.EvalSymlinks(l.path)
	if err != nil {
		return reason(err)
	}
	l.real = real
	info, err := os.Stat(real)
	if err != nil {
		return reason(err)
	}
	dir := real
	switch {
	case info.IsDir():
	case info.Mode().IsRegular():
		dir, l.file = filepath.Split(real)
	default:
		return errors.New("it is neither a file nor a folder")
	}
	if l.root, err = os.OpenRoot(dir + string(filepath.Separator) + "."); err != nil {
		return reason(err)
	}
	l.own.paths = s.o.Own
	if l.own.hides(info) || l.own.covers(real) || namesBridge(filepath.ToSlash(real)) {
		return errOwn
	}
	return nil
}

// openChild starts the child of X6, if the configuration wants one.
func (s *Share) openChild(ctx context.Context, l *live, sid string, epoch int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.epoch != epoch {
		s.mu.Unlock()
		return errStopped
	}
	s.starting = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.starting = nil
		s.mu.Unlock()
	}()
	child, err := s.o.Child(ctx, ChildShare{
		Path: l.real, Dir: l.file == "", ReadOnly: l.readOnly || s.o.Access() == ReadOnly, SID: sid,
	})
	if err != nil || child == nil {
		return err
	}
	l.child = child
	// A child looks at no file's identity, so it gets no folder in which the bridge's own files are.
	if l.own.within(l.root) && l.file == "" {
		return fmt.Errorf("cannot serve %s: the bridge's own files are inside it — share a folder further down", l.path)
	}
	return nil
}

// result is the answer of X1.
func (s *Share) result(l *live, replaced bool) string {
	type usage struct {
		Download string `json:"download"`
		Upload   string `json:"upload"`
		Append   string `json:"append,omitempty"`
		Public   string `json:"public"`
	}
	type installed struct {
		Dufs *string `json:"dufs"`
	}
	st := s.statusOf(l)
	const auth = "-H 'Authorization: Bearer <TOKEN>' "
	const download = "curl -f " + auth + "-O "     // what is refused is not taken for the file
	const upload = "curl --fail-with-body " + auth // and the reason is shown
	name := "<name>"
	if l.file != "" {
		name = url.PathEscape(l.file)
	}
	u := usage{
		Download: download + st.URL + name,
		Upload:   upload + "-T <local> " + st.URL + name,
		Append: upload + "-X PATCH -H 'X-Update-Range: append' --data-binary @<piece> " + st.URL + name +
			" (a request carries at most the body limit, through the tunnel 100 MB: PUT the first piece, append the others)",
		Public: noTunnel,
	}
	if l.readOnly || l.file != "" || s.o.Access() == ReadOnly {
		u.Upload, u.Append = "this share takes no uploads", ""
	}
	if st.PublicURL != "" {
		u.Public = download + st.PublicURL + name
	}
	res := struct {
		URL              string    `json:"url"`
		PublicURL        *string   `json:"publicUrl"`
		Route            string    `json:"route"`
		Path             string    `json:"path"`
		Port             int       `json:"port"`
		Replaced         bool      `json:"replaced"`
		StartedAt        string    `json:"startedAt"`
		ExpiresAt        string    `json:"expiresAt"`
		Usage            usage     `json:"usage"`
		Installed        installed `json:"installed"`
		BrowserURL       string    `json:"browserUrl,omitempty"`
		PublicBrowserURL string    `json:"publicBrowserUrl,omitempty"`
	}{URL: st.URL, PublicURL: orNull(st.PublicURL), Route: Route, Path: l.path, Port: st.Port, Replaced: replaced,
		StartedAt: stamp(l.started), ExpiresAt: stamp(l.expires), Usage: u}
	if l.child != nil {
		res.Installed.Dufs = orNull(l.child.Installed())
	}
	if l.secret != "" {
		res.BrowserURL = st.URL + l.secret + "/"
		if st.PublicURL != "" {
			res.PublicBrowserURL = st.PublicURL + l.secret + "/"
		}
	}
	return string(plainJSON(res))
}

// reason is the innermost part of a file error: the caller's message names the path already.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// joinPath is path where it is absolute, else path below base.
func joinPath(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(base, path)
}
