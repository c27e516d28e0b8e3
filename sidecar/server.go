package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/a2mcp/a2mcp/files"
)

// How a port is given up (P5).
const (
	drainTimeout      = 10 * time.Second // for calls in progress
	lastAnswers       = 500 * time.Millisecond
	readHeaderTimeout = 30 * time.Second
	idleTimeout       = 5 * time.Minute
)

// server is a bound port.
type server struct {
	listener net.Listener
	http     *http.Server
	port     int
	url      string
	wanted   Config // the configuration it was bound for
	missed   int    // the port that clients know or expect and somebody else has; 0: none
}

// bind listens where the configuration says, at the port that there was last if
// there was one. A port that is taken is replaced by another; one that may not be
// bound is an error (P7).
func (s *sidecar) bind(cfg Config, last int) (*server, error) {
	var taken error
	missed := 0
	for _, port := range []int{last, cfg.Port, 0} {
		if port == 0 && cfg.Port != 0 && taken == nil {
			continue // no predecessor; the configured port comes first
		}
		listener, err := s.opt.Listen("tcp", net.JoinHostPort(cfg.Host, strconv.Itoa(port)))
		switch {
		case err == nil:
			sv := s.newServer(listener, cfg)
			sv.missed = missed
			return sv, nil
		case !addressInUse(err):
			return nil, bindError(cfg, port, err)
		}
		taken = err
		if missed == 0 {
			missed = port
		}
	}
	return nil, bindError(cfg, cfg.Port, taken)
}

func bindError(cfg Config, port int, err error) error {
	hint := "set `host` in a2mcp.json to an address of this machine"
	if errors.Is(err, fs.ErrPermission) {
		hint = "set `port` in a2mcp.json to 0 or to a number above 1023"
	}
	return fmt.Errorf("listening on %s: %w; %s", net.JoinHostPort(cfg.Host, strconv.Itoa(port)), err, hint)
}

func (s *sidecar) newServer(listener net.Listener, cfg Config) *server {
	_, number, _ := net.SplitHostPort(listener.Addr().String())
	port, _ := strconv.Atoi(number)
	return &server{
		listener: listener, port: port, wanted: cfg,
		url: "http://" + net.JoinHostPort(reachable(cfg.Host), number) + "/",
		http: &http.Server{
			Handler:                      s.front,
			ReadHeaderTimeout:            readHeaderTimeout,
			IdleTimeout:                  idleTimeout,
			ConnContext:                  files.ConnContext,
			DisableGeneralOptionsHandler: true, // OPTIONS * is 405 like everything else (H4)
			ErrorLog:                     slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		},
	}
}

// reachable is the address to give to callers on this machine.
func reachable(host string) string {
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if ip.To4() == nil {
			return "::1"
		}
		return "127.0.0.1"
	}
	return host
}

// samePort reports whether a configuration leaves the port what it is; it may also
// pin a free one that was found.
func (sv *server) samePort(cfg Config) bool { return cfg.Port == sv.wanted.Port || cfg.Port == sv.port }

// everyNetwork reports whether listening on a host is listening on every network of
// this machine, which the address to give does not show.
func everyNetwork(host string) bool { return reachable(host) != host }

// serve starts answering. The goroutine ends with the listener. One that breaks is
// given up between the events of sessions, so that the next start finds no port.
func (s *sidecar) serve(sv *server) {
	listener := sv.listener
	s.draining.Go(func() {
		err := sv.http.Serve(listener)
		if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
			return
		}
		s.log.Error("listener broke", "err", err, "hint", "the next session_start binds again")
		s.lane.put(func(context.Context) {
			s.mu.Lock()
			broken := s.server == sv
			s.mu.Unlock()
			if broken {
				s.down(drainTimeout)
			}
		})
	})
}

// release gives up a port: new connections are refused when it returns; calls in
// progress have until the limit, then they are answered with an error (P5).
func (s *sidecar) release(sv *server, limit time.Duration) {
	_ = sv.listener.Close()
	released := time.Now()
	s.draining.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if sv.http.Shutdown(ctx) != nil {
			s.front.EndCalls(released, textEnding)
			last, cancel := context.WithTimeout(context.Background(), lastAnswers)
			defer cancel()
			if sv.http.Shutdown(last) != nil {
				_ = sv.http.Close()
			}
		}
		if !s.bound() {
			s.share.Close("bridge stopped")
		}
	})
}

// bound reports whether there is a port.
func (s *sidecar) bound() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server != nil
}
