package files

import (
	"context"
	"net/http"
)

// Child is a file server in a process of its own that stands behind the /xfer/ route instead of the
// built-in one (X6). The share asks it for nothing but answers, a port to name and an end.
type Child interface {
	// Handler passes a request on. It gets every request of the route as it came, path and query
	// untouched, the caller's bearer already judged; a child that is down is its 502 to give (X7).
	Handler() http.Handler
	// Port is the loopback port the child listens on: `port` in results and records (X1, L7).
	Port() int
	// Installed is the path of a binary that was installed for this start, "" where none was:
	// `installed.dufs` of the result (X1).
	Installed() string
	// Stop ends the child and returns when the process is gone (X8). It may be called more than once.
	Stop()
}

// ChildShare says what a child is to serve.
type ChildShare struct {
	Path     string // absolute, links resolved
	Dir      bool   // a folder; false is a single file
	ReadOnly bool   // refuse every write, those of the caller's and those of the configuration alike
	SID      string // session that asked, for the install record (L7)
}

// StartChild starts a child and returns when it answers. ctx bounds the start and nothing after it.
// A nil Child without an error means: use the built-in server. The error's text is what the caller
// reads (X4).
type StartChild func(ctx context.Context, share ChildShare) (Child, error)
