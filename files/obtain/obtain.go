// Package obtain finds the binary of a child (dufs, cloudflared) or installs it (X9).
//
// # Idea
//
// What is run was named by the operator, is on PATH, or is byte for byte what the source pins. A
// download is held in memory until its digest and that of the binary inside are right, so nothing
// that was not verified is ever unpacked or stands on disk under a name, and nothing is there to be
// cleaned up. The name of an installed binary has the version in it and is never written twice:
// putting it in place never replaces anything.
//
// # Goroutines
//
// None is started but the timers of a download. Any number of goroutines and processes may look for
// the same tool at once: a lock per tool, beside the register, makes one of them download and the others
// wait. Two tools do not wait for each other.
//
// # Order of events
//
// Configured path, else PATH, else the register, all three without the lock; then, with the lock, the
// register again, the place, the download, the place again, the record, the register. A crash between
// any two leaves either nothing or a whole binary with the pinned digest, which the next call takes over.
package obtain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Tool is a program in the one version that the bridge would install.
type Tool struct {
	Name, Version string
	Assets        map[string]Asset // by GOOS/GOARCH
}

// Asset is the file of a release for one platform.
type Asset struct {
	File, URL string
	Size      int64  // of the file
	SHA256    string // of the file as it is downloaded
	Inner     string // SHA-256 of the binary inside, "" where the file is the binary
}

// binary is the digest of what ends up on disk.
func (a Asset) binary() string {
	if a.Inner != "" {
		return a.Inner
	}
	return a.SHA256
}

// Finder finds tools. It may be used by several goroutines at once.
type Finder struct {
	AgentDir string       // has the register
	DataDir  string       // is installed into; see DefaultDataDir
	Client   *http.Client // nil is a client of its own; its redirect policy is not used
	Log      *slog.Logger // nil is none
	// Audit is told of each install, good or bad, a good one before Find returns its path and before
	// it is registered. Its error is Find's. It is called with the tool's lock held and must not call
	// Find. nil is none.
	Audit func(Install) error

	// What tests change; zero is the value of the contract.
	platform    string
	idle, total time.Duration
	limit       int64 // of a download, in bytes
}

// Install is one try to install a tool.
type Install struct {
	Tool, Version string
	Asset         string // name of the file of the release
	SHA256        string // pinned digest of that file
	Path          string // where the binary is, or would have been
	Err           error  // why it is not there; nil is a good one
}

// Found is a binary that may be started.
type Found struct {
	Path      string // absolute
	Installed bool   // downloaded by this very call
}

// Find returns the binary of tool. configured is the operator's value, "" where there is none: with a
// separator it is a path and nothing else is tried, without one it is the name to look for on PATH.
func (f *Finder) Find(ctx context.Context, tool Tool, configured string) (Found, error) {
	if isPath(configured) {
		path, err := executable(configured)
		if err != nil {
			return Found{}, fmt.Errorf("using %s from xfer.%s in a2mcp.json: %w; correct the path, or remove it to have %s looked for on PATH",
				configured, tool.Name, err, tool.Name)
		}
		return Found{Path: path}, nil
	}
	name := tool.Name
	if configured != "" {
		name = configured
	}
	if path := onPath(name); path != "" {
		return Found{Path: path}, nil
	}
	if name != tool.Name {
		f.log().Info("not on PATH", "name", name, "configured", "xfer."+tool.Name)
	}
	found, err := f.findInstalled(ctx, tool)
	if err == nil || ctx.Err() != nil {
		return found, err
	}
	return Found{}, fmt.Errorf("%w; put %s on PATH, or set xfer.%s in a2mcp.json to its path", err, tool.Name, tool.Name)
}

// findInstalled returns the bridge's own install of tool and makes it if there is none.
func (f *Finder) findInstalled(ctx context.Context, tool Tool) (Found, error) {
	platform := f.platform
	if platform == "" {
		platform = runtime.GOOS + "/" + runtime.GOARCH
	}
	asset, ok := tool.Assets[platform]
	if !ok {
		return Found{}, fmt.Errorf("%s is not on PATH, and no download of it is pinned for %s", tool.Name, platform)
	}
	if path, _ := f.registered(tool, asset); path != "" {
		return Found{Path: path}, nil
	}
	if f.DataDir == "" {
		return Found{}, fmt.Errorf("%s is not on PATH, and there is no folder to install it into: the home folder is not known", tool.Name)
	}
	unlock, err := f.lock(ctx, tool.Name)
	if err != nil {
		return Found{}, err
	}
	defer unlock()
	path, err := f.registered(tool, asset)
	if path != "" {
		return Found{Path: path}, nil // somebody else was faster
	}
	if err != nil {
		f.log().Warn("an earlier install is not used", "tool", tool.Name, "err", err)
	}
	binary := tool.Name
	if strings.HasPrefix(platform, "windows/") {
		binary += ".exe"
	}
	return f.install(ctx, tool, asset, binary)
}

// install puts the binary in place, tells of it and registers it. The caller has the lock.
func (f *Finder) install(ctx context.Context, tool Tool, asset Asset, binary string) (Found, error) {
	base := strings.TrimSuffix(binary, ".exe")
	path := filepath.Join(f.DataDir, base+"-"+tool.Version+binary[len(base):])
	got, err := f.fill(ctx, asset, binary, path)
	if err != nil {
		err = fmt.Errorf("installing %s %s from %s (pinned sha256 %s): %w", tool.Name, tool.Version, asset.File, asset.SHA256, err)
	}
	if f.Audit != nil {
		unrecorded := f.Audit(Install{Tool: tool.Name, Version: tool.Version, Asset: asset.File, SHA256: asset.SHA256, Path: path, Err: err})
		if err == nil {
			err = unrecorded
		}
	}
	if err != nil {
		return Found{}, err
	}
	f.log().Info("installed", "tool", tool.Name, "version", tool.Version, "path", path)
	entry := registerEntry{Tool: tool.Name, Version: tool.Version, Asset: asset.File, SHA256: asset.SHA256, Path: path, Binary: asset.binary()}
	if err := f.register(ctx, entry); err != nil {
		// The next call finds the file by its digest and tries this again.
		f.log().Warn("install not registered", "tool", tool.Name, "path", path, "err", err)
	}
	return Found{Path: path, Installed: got}, nil
}

// fill makes sure that the pinned binary is at path, and says whether it was downloaded for that. A file
// that is there already with the pinned digest is an install that broke off before it was registered.
func (f *Finder) fill(ctx context.Context, asset Asset, binary, path string) (downloaded bool, err error) {
	if there, err := occupied(path, asset.binary()); there || err != nil {
		return false, err
	}
	data, err := f.download(ctx, asset)
	if err != nil {
		return false, err
	}
	if asset.Inner != "" {
		if data, err = unpack(asset.File, data, binary, maxBinary); err != nil {
			return false, err
		}
		if sum := digest(data); sum != asset.Inner {
			return false, fmt.Errorf("the %s inside has sha256 %s, pinned is %s", binary, sum, asset.Inner)
		}
	}
	if err := place(path, data); err != nil {
		if there, foreign := occupied(path, asset.binary()); there || foreign != nil {
			return there, foreign // an install of another agent folder was faster, or something else was
		}
		return false, err
	}
	return true, nil
}

// occupied says whether the file that is to be at path is there. Anything else there is an error, as
// it is nothing that the bridge installed.
func occupied(path, sha256 string) (bool, error) {
	sum, err := digestOf(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("the place %s is taken: %w", path, err)
	case sum != sha256:
		return false, fmt.Errorf("%s (sha256 %s) is not what the bridge installs (sha256 %s) and is left as it is; move it away to have it installed",
			path, sum, sha256)
	}
	return true, makeExecutable(path)
}

func (f *Finder) log() *slog.Logger {
	if f.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return f.Log
}
