// Package files shares one file or folder at a time over HTTP: the tools xfer_share, xfer_status and
// xfer_stop, and the handler of the /xfer/ route (X1–X10).
//
// # Idea
//
// A Share holds at most one live share. A live share is an *os.Root, an end and a set of files that it
// made; every request opens what it needs through the root, so a link, a dot-dot or a swap in between
// leads nowhere outside. Nothing is ever overwritten or removed: what comes in is written to a hidden
// file beside its place and put there without replacing, so a request is done whole or not at all.
// The bridge's own files do not exist through a share, by name or by identity (own.go).
//
// # Goroutines
//
// None is started here but the timer of a share's end; requests run in the goroutines of the HTTP
// server. A share that ends cuts the transfers that are under way and is closed when they are gone.
//
// # Order of events
//
// xfer_share: look at the path, start the child if there is to be one, then in one step (nobody sees
// the moment between) close the old share, write both records, put the new one in place. Whoever takes
// a share out of its place writes its one closing record (X8); a timer that comes late finds another
// share there and does nothing.
package files

import (
	"context"
	"log/slog"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/a2mcp/a2mcp/audit"
)

// Route is the URL path that a share appears under.
const Route = "/xfer/"

// Access is what the operator allows of sharing (config `xfer.access`).
type Access int

// The levels of Access.
const (
	ReadWrite Access = iota // downloads and uploads
	ReadOnly                // downloads only
	Off                     // no share at all
)

// Options are the parts of the bridge that a share depends on. Functions are asked at each use, so a
// changed configuration or port counts at once.
type Options struct {
	Audit *audit.Log // receives the records of L7; nil writes none
	// Required says that without its record no share may begin (L5); nil is no.
	Required func() bool
	Log      *slog.Logger // operator's log

	Home string // what `~` stands for (X1)
	Cwd  string // what relative paths start from (X1)

	// Base gives the bridge's address without a slash at the end, and the open tunnel's, "" when none
	// is open.
	Base func() (local, public string)
	// Own lists the bridge's own files and folders: configuration, log, register, run files, installs.
	Own func() []string
	// Access is the operator's limit; nil is ReadWrite.
	Access func() Access
	// MaxBody is the limit of a request body in bytes (H3); nil is 128 MiB.
	MaxBody func() int64
	// Child starts a file server to use instead of the built-in one (X6); nil is always built in.
	Child StartChild
}

// Share is the one share of a bridge (X2). Its methods may be called from any goroutine.
type Share struct {
	o     Options
	write func(audit.Record) error // o.Audit's, nil without one

	acting sync.Mutex // one xfer_share, xfer_stop or Close at a time

	mu       sync.Mutex
	cur      *live              // what is served, nil is nothing
	starting context.CancelFunc // ends the start of a child that is under way
	epoch    int                // counts Close, so a share that waited through one does not begin
	ending   sync.WaitGroup     // ends begun by a timer
}

// New makes a Share that serves nothing.
func New(o Options) *Share {
	if o.Own == nil {
		o.Own = func() []string { return nil }
	}
	if o.Required == nil {
		o.Required = func() bool { return false }
	}
	if o.Access == nil {
		o.Access = func() Access { return ReadWrite }
	}
	if o.MaxBody == nil {
		o.MaxBody = func() int64 { return 128 << 20 }
	}
	s := &Share{o: o}
	if o.Audit != nil {
		s.write = o.Audit.Write
	}
	return s
}

// Status is what there is to say about the share, for the operator's status and xfer_status.
type Status struct {
	Serving   bool
	Path      string // as it was asked for, absolute
	Port      int    // the file server's: the bridge's own with the built-in one
	URL       string // of the route
	PublicURL string // of the route through the open tunnel, "" without one
	ReadOnly  bool
	Browser   bool // a browser link is open (X10)
	StartedAt time.Time
	ExpiresAt time.Time
}

// Status reports what is shared at this moment.
func (s *Share) Status() Status {
	l := s.live()
	if l == nil {
		return Status{}
	}
	return s.statusOf(l)
}

func (s *Share) statusOf(l *live) Status {
	local, public := s.o.Base()
	st := Status{
		Serving: true, Path: l.path, Port: l.port(local), URL: local + Route,
		ReadOnly: l.readOnly, Browser: l.secret != "", StartedAt: l.started, ExpiresAt: l.expires,
	}
	if public != "" {
		st.PublicURL = public + Route
	}
	return st
}

// live is the share in place, nil where there is none.
func (s *Share) live() *live {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cur
}

// portOf is the port in an address such as http://127.0.0.1:8080, 0 where there is none.
func portOf(base string) int {
	u, err := url.Parse(base)
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(u.Port())
	return n
}
