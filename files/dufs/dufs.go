// Package dufs runs dufs 0.46.0 as the file server behind the /xfer/ route (X6).
//
// # Idea
//
// One Server is one process for one share, on loopback, behind a user and password that are made for it
// and stand in a file that only the operator can read, never on a command line or in an environment.
// dufs is given the right to upload and not to delete; what it would do all the same with something that
// is there (COPY over a file, PATCH inside one) does not reach it.
//
// # Goroutines
//
// Those of the child; requests run in the goroutines of the HTTP server.
//
// # Order of events
//
// A port is found, the configuration written, the process started and asked until it answers; then the
// configuration is removed. A port that somebody else took meanwhile ends the process, and another is
// tried.
package dufs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/a2mcp/a2mcp/files/child"
)

// Limits of a start and an end.
const (
	startLimit = 10 * time.Second
	startPause = 20 * time.Millisecond
	startTries = 3                      // of a port that was taken between being found and being used
	stopGrace  = 500 * time.Millisecond // dufs ends at once; a bridge that ends has 5 s for everything (P6)
)

// Options say what to serve.
type Options struct {
	Binary   string // of dufs
	Path     string // file or folder, absolute
	ReadOnly bool
	Log      *slog.Logger
}

// Server is a running dufs.
type Server struct {
	process *child.Process
	port    int
	user    string
	secret  string
	log     *slog.Logger
	handler http.Handler

	mu   sync.Mutex
	ours map[string]bool // files that came in through this share: they may be appended to (X7)
}

// Start returns when dufs answers. The error is for the caller: dufs' own last words where it has said
// something (X4).
func Start(ctx context.Context, o Options) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var err error
	for range startTries {
		var s *Server
		if s, err = start(ctx, o); err == nil {
			return s, nil
		}
		if !errors.Is(err, errPortTaken) {
			break
		}
	}
	return nil, err
}

var errPortTaken = errors.New("dufs: its port was taken by another program")

func start(ctx context.Context, o Options) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("finding a port for dufs: %w", err)
	}
	s := &Server{port: port, user: "a2mcp", secret: rand.Text(), log: o.Log, ours: map[string]bool{}}
	config, err := s.writeConfig(o)
	if err != nil {
		return nil, fmt.Errorf("making a configuration for dufs: %w", err)
	}
	defer os.RemoveAll(filepath.Dir(config))
	said := &lastLine{log: o.Log}
	s.process, err = child.Start(context.Background(), child.Command{
		Path: o.Binary, Args: []string{"--config", config}, Env: child.Env(), Line: said.line,
	})
	if err != nil {
		return nil, err
	}
	s.handler = s.proxy()
	if err := s.await(ctx, said); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// freePort asks the system for a port; it is free at that moment.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// writeConfig makes a folder for the one file, both for the operator alone. JSON is YAML.
func (s *Server) writeConfig(o Options) (path string, err error) {
	dir, err := os.MkdirTemp("", "a2mcp-dufs-") // mode 0700
	if err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]any{
		"serve-path":    o.Path,
		"bind":          []string{"127.0.0.1"},
		"port":          s.port,
		"path-prefix":   "xfer",
		"auth":          []string{s.user + ":" + s.secret + "@/:rw"},
		"allow-upload":  !o.ReadOnly,
		"allow-delete":  false,
		"allow-search":  true,
		"allow-archive": true,
		"allow-hash":    true,
		"allow-symlink": false,
		"log-format":    "",
	})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "dufs.yaml")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return path, nil
}

// await asks until dufs answers to its own user.
func (s *Server) await(ctx context.Context, said *lastLine) error {
	pause := time.NewTicker(startPause)
	defer pause.Stop()
	for {
		if s.answers(ctx) && s.process.Alive() { // else it is somebody else who answers there
			return nil
		}
		select {
		case <-s.process.Done():
			if said.portTaken() {
				return errPortTaken
			}
			return fmt.Errorf("dufs ended before it answered (%w): %s", endOf(s.process), said.text())
		case <-ctx.Done():
			return fmt.Errorf("dufs did not answer within %s: %s", startLimit, said.text())
		case <-pause.C:
		}
	}
}

var errEnded = errors.New("exit code 0")

func endOf(p *child.Process) error {
	if err := p.Err(); err != nil {
		return err
	}
	return errEnded
}

func (s *Server) answers(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, s.base()+"/xfer/", http.NoBody)
	if err != nil {
		return false
	}
	req.SetBasicAuth(s.user, s.secret)
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func (s *Server) base() string { return "http://127.0.0.1:" + strconv.Itoa(s.port) }

// Handler passes requests of the route on.
func (s *Server) Handler() http.Handler { return s.handler }

// Port is the loopback port that dufs listens on.
func (s *Server) Port() int { return s.port }

// Stop ends dufs and returns when the process is gone.
func (s *Server) Stop() { s.process.Stop(stopGrace) }
