package sidecar

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"reflect"
	"strconv"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/a2mcp/a2mcp/proto"
)

// debounce is how long the file has to rest before it is read: editors write in
// several steps. settle is how often it is looked at whatever the watch says,
// for the changes that no watch of the folder sees, such as those behind a
// symbolic link. All keep an edit within 3 s (F2).
const (
	debounce = 200 * time.Millisecond
	settle   = 2 * time.Second
	burst    = time.Second // how long writing that does not rest is waited for
)

// watchConfig reads the configuration again when its file changes.
func (s *sidecar) watchConfig(ctx context.Context) error {
	if !s.greeted(ctx) {
		return ctx.Err()
	}
	return s.opt.Watch(ctx, s.paths.config, func() {
		s.lane.put(s.reload) // between the session events, never during one
	})
}

// reload puts an edited file into force: the token at the next request, the port
// by binding the new one before the old one is given up. A file that is wrong or
// gone keeps the running settings (F2).
func (s *sidecar) reload(ctx context.Context) {
	cfg, changed, waits := s.takeOver()
	if waits {
		s.sessionsWait(ctx)
		return
	}
	s.mu.Lock()
	bound := s.server
	s.mu.Unlock()
	if changed && bound != nil && (cfg.Host != bound.wanted.Host || !bound.samePort(cfg)) {
		s.rebind(cfg, bound)
	}
}

// takeOver puts into force what the file says, if it is right and new. waits says
// that until now a wrong one has kept the port closed.
func (s *sidecar) takeOver() (cfg Config, changed, waits bool) {
	s.editing.Lock()
	defer s.editing.Unlock()
	cfg, warnings, err := readConfig(s.paths.config)
	if err == nil {
		err = s.refuseRetired(cfg)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.log.Warn("configuration gone", "file", s.paths.config, "hint", "the running settings stay; restart the host to have a new file made")
		return cfg, false, false
	case err != nil:
		s.log.Error("configuration not taken over", "err", err)
		_ = s.host.Notify(proto.LevelError, "a2mcp keeps its running settings: "+escape(err.Error()))
		s.editFailed = true
		return cfg, false, false
	}
	if s.editFailed {
		s.editFailed = false
		_ = s.host.Notify(proto.LevelInfo, "a2mcp: the configuration is in order again")
	}
	s.mu.Lock()
	waits = s.configErr != nil
	s.mu.Unlock()
	if waits {
		return cfg, false, true
	}
	s.noteOdd(warnings)
	s.tellOdd()
	old := *s.config()
	if cfg.Token == "" {
		cfg.Token = old.Token // an edit that removes it does not open the door; a restart writes a new one
	}
	if cfg.HostLLM != old.HostLLM {
		s.log.Warn("configuration", "file", s.paths.config, "detail", "host_llm counts at the next start of the host")
		cfg.HostLLM = old.HostLLM
	}
	if reflect.DeepEqual(cfg, old) {
		return cfg, false, false
	}
	s.adopt(cfg)
	s.log.Info("configuration taken over", "file", s.paths.config)
	return cfg, true, false
}

// sessionsWait binds the port that a wrong configuration had kept closed, if the
// host has a main session waiting for it.
func (s *sidecar) sessionsWait(ctx context.Context) {
	if s.mains(ctx, startStateTimeout, 0) > 0 {
		_, _ = s.up(ctx, 1) // what is still wrong has been told
	}
}

// rebind moves to another port or address. Sessions and calls in progress go on,
// those on connections to the old listener as well, however long they take.
func (s *sidecar) rebind(cfg Config, old *server) {
	sv, err := s.bindBeside(cfg, old)
	if err != nil {
		s.log.Error("rebinding", "err", err, "still at", old.url)
		_ = s.host.Notify(proto.LevelError, fmt.Sprintf("a2mcp stays at %s: %s", old.url, escape(err.Error())))
		return
	}
	_ = old.listener.Close()
	old.http.SetKeepAlivesEnabled(false) // each connection ends with the answer that is under way
	s.mu.Lock()
	s.server, s.lastPort = sv, sv.port
	s.older = append(s.older, old)
	s.mu.Unlock()
	s.writeRunFile(sv)
	s.remember(context.Background())
	s.serve(sv)
	if sv.url != old.url {
		if s.tunnel.public() != "" {
			_ = s.host.Notify(proto.LevelWarning, "the tunnel is closed, because the port has changed; `/a2mcp tunnel` opens another")
		}
		s.closeTunnel("port changed")
	}
	s.announce(sv)
}

// bindBeside binds what an edit asks for, while the old listener is there. Where
// the port stays, the old one may take in the new address or be taken in by it: then
// it makes place, and is put back if that was in vain.
func (s *sidecar) bindBeside(cfg Config, old *server) (*server, error) {
	if !old.samePort(cfg) {
		return s.bind(cfg, 0)
	}
	address := net.JoinHostPort(cfg.Host, strconv.Itoa(old.port))
	listener, err := s.opt.Listen("tcp", address)
	if addressInUse(err) {
		_ = old.listener.Close()
		if listener, err = s.opt.Listen("tcp", address); err != nil {
			if back, e := s.opt.Listen("tcp", old.listener.Addr().String()); e == nil {
				old.listener = back
				s.serve(old)
			}
		}
	}
	switch {
	case err == nil:
		return s.newServer(listener, cfg), nil
	case addressInUse(err):
		return s.bind(cfg, old.port)
	}
	return nil, bindError(cfg, old.port, err)
}

// watchFile calls changed once for each burst of changes to the file, until ctx
// ends. The file is watched and not its folder: the log is in the same folder,
// and every record of it would wake the watch. An editor that saves by renaming
// leaves the watch on the old file, which is told by an event and mended; what
// no watch sees, looking does.
func watchFile(ctx context.Context, path string, changed func()) error {
	var events chan fsnotify.Event
	var faults chan error
	watch := func() {}
	if watcher, err := fsnotify.NewWatcher(); err == nil { // else looking has to do
		defer watcher.Close()
		events, faults = watcher.Events, watcher.Errors
		watch = func() { _ = watcher.Add(path) } // repeated; fails while there is no file
	}
	watch()
	rest := time.NewTimer(debounce)
	defer rest.Stop()
	latest := time.Now().Add(burst)
	touched := func() {
		if latest.IsZero() {
			latest = time.Now().Add(burst)
		}
		rest.Reset(min(debounce, time.Until(latest)))
	}
	look := time.NewTicker(settle)
	defer look.Stop()
	var last stamp // none: the first look catches an edit made since the file was read
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-events:
			touched()
			continue
		case err := <-faults:
			if err != nil { // an overflow: something may have been missed
				touched()
			}
			continue
		case <-look.C:
			watch()
			if stampOf(path) != last {
				touched() // somebody may be in the middle of writing it
			}
			continue
		case <-rest.C:
			latest = time.Time{}
		}
		watch()
		if now := stampOf(path); now != last {
			last = now
			changed()
		}
	}
}

// stamp tells one state of a file from another.
type stamp struct {
	size int64 // -1: it cannot be read
	sum  [sha256.Size]byte
}

func stampOf(path string) stamp {
	data, err := os.ReadFile(path)
	if err != nil {
		return stamp{size: -1}
	}
	return stamp{size: int64(len(data)), sum: sha256.Sum256(data)}
}
