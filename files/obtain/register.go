package obtain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// registerFile is the register's name in the agent folder; its lock and its temporary files stand
// beside it with names that begin with it.
const registerFile = "a2mcp.installs.json"

// register is the content of the register: what the bridge installed.
type register struct {
	Installs []registerEntry `json:"installs"`
}

type registerEntry struct {
	Tool    string `json:"tool"`
	Version string `json:"version"`
	Asset   string `json:"asset"`
	SHA256  string `json:"sha256"` // of the asset
	Path    string `json:"path"`
	Binary  string `json:"binarySha256"` // of the file at Path
}

func (f *Finder) registerPath() string { return filepath.Join(f.AgentDir, registerFile) }

// readRegister reads the register; none is an empty one. It is replaced whole when it changes, so
// reading needs no lock.
func (f *Finder) readRegister() (register, error) {
	var reg register
	data, err := os.ReadFile(f.registerPath())
	if errors.Is(err, os.ErrNotExist) {
		return reg, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &reg)
	}
	if err != nil {
		return register{}, fmt.Errorf("reading register %q: %w", f.registerPath(), err)
	}
	return reg, nil
}

// registered returns the path of an earlier install of asset, "" if there is none; the error says why one
// that is registered cannot be used. The register only says where to look: the digest that counts is
// the pinned one.
func (f *Finder) registered(tool Tool, asset Asset) (path string, err error) {
	reg, err := f.readRegister()
	if err != nil {
		return "", err
	}
	for _, entry := range reg.Installs {
		if entry.Tool != tool.Name || entry.Version != tool.Version || !filepath.IsAbs(entry.Path) {
			continue
		}
		sum, readErr := digestOf(entry.Path)
		if readErr == nil && (sum != entry.Binary || sum != asset.binary()) {
			readErr = fmt.Errorf("%s has sha256 %s, registered is %s, pinned %s", entry.Path, sum, entry.Binary, asset.binary())
		}
		if readErr == nil {
			readErr = makeExecutable(entry.Path)
		}
		if readErr == nil {
			return entry.Path, nil
		}
		err = readErr
	}
	return "", err
}

// register adds entry, in place of any other for the same path.
func (f *Finder) register(ctx context.Context, entry registerEntry) error {
	unlock, err := f.lock(ctx, "")
	if err != nil {
		return err
	}
	defer unlock()
	reg, err := f.readRegister()
	if err != nil {
		f.log().Warn("register of installs is written anew", "err", err)
	}
	reg.Installs = slices.DeleteFunc(reg.Installs, func(e registerEntry) bool { return e.Path == entry.Path })
	reg.Installs = append(reg.Installs, entry)
	data, err := json.MarshalIndent(reg, "", "  ")
	if err != nil {
		return err
	}
	temp, err := writeTemp(f.registerPath(), append(data, '\n'))
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	return os.Rename(temp, f.registerPath())
}

// lockPoll is how often a lock that another has is tried again. Waiting in the lock itself could not
// be cancelled.
const lockPoll = 50 * time.Millisecond

// lock keeps others, here and in other processes, from installing the tool called what, or from writing
// the register if that is "", until unlock is called. Whoever has both took the tool's first.
func (f *Finder) lock(ctx context.Context, what string) (unlock func(), err error) {
	if err := os.MkdirAll(f.AgentDir, 0o700); err != nil {
		return nil, fmt.Errorf("making the agent folder: %w", err)
	}
	// The file stays: removing it would let two have the lock, one of the old file and one of the new.
	name := f.registerPath() + ".lock"
	if what != "" {
		name = f.registerPath() + "." + what + ".lock"
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the register: %w", err)
	}
	var again <-chan time.Time
	for {
		got, err := tryLock(file)
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("locking %q: %w", file.Name(), err)
		}
		if got {
			return func() { file.Close() }, nil // which gives the lock up
		}
		if again == nil {
			f.log().Info("waiting for another install", "lock", file.Name())
			ticker := time.NewTicker(lockPoll)
			defer ticker.Stop()
			again = ticker.C
		}
		select {
		case <-again:
		case <-ctx.Done():
			file.Close()
			return nil, fmt.Errorf("waiting for another install: %w", context.Cause(ctx))
		}
	}
}
