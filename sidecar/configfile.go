package sidecar

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/a2mcp/a2mcp/proto"
)

// newToken makes a token: 32 random bytes, 43 characters of base64url (A3).
func newToken() Secret {
	var random [32]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	return Secret(base64.RawURLEncoding.EncodeToString(random[:]))
}

// loadConfig reads the file, making it first if it does not exist and adding a
// token if it has none (F1, A3). A file that is wrong is left untouched.
func loadConfig(path string) (Config, []string, error) {
	cfg, warnings, err := readConfig(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = createConfig(path); err == nil {
			cfg, warnings, err = readConfig(path)
		}
	}
	if err == nil && cfg.Token == "" {
		if err = writeToken(path, newToken()); err == nil {
			cfg, warnings, err = readConfig(path) // whoever wrote last
		}
	}
	return cfg, warnings, err
}

func readConfig(path string) (Config, []string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, nil, fmt.Errorf("reading the configuration: %w", err)
	}
	cfg, warnings, err := parseConfig(data)
	if err != nil {
		return Config{}, nil, fmt.Errorf("%s: %w", path, err)
	}
	return cfg, append(warnings, exposure(path)...), nil
}

// createConfig makes a first configuration, behind a link that leads nowhere yet
// too. The file appears whole or not at all, and never replaces one that another
// first start has just made.
func createConfig(path string) error {
	path = linkTarget(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the folder of the configuration: %w", err)
	}
	temp, err := writeBeside(path, []byte("{\n  \"token\": \""+string(newToken())+"\"\n}\n"))
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		// A file system without links: the loser of a race still finds a whole file.
		if err := os.Rename(temp, path); err != nil {
			return fmt.Errorf("making the configuration: %w", err)
		}
	}
	return nil
}

func writeToken(path string, token Secret) error {
	return setMember(path, "token", proto.Encode(string(token)))
}

// setMember puts a member into the file and leaves every other byte of it as it is.
func setMember(path, name string, value []byte) error {
	target, err := filepath.EvalSymlinks(path) // the file, not a link to it, is replaced
	if err != nil {
		return fmt.Errorf("finding the configuration: %w", err)
	}
	data, err := os.ReadFile(target)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	if !isObject(data) { // somebody is just writing it
		return fmt.Errorf("%s is not a JSON object now; mend it first", path)
	}
	temp, err := writeBeside(target, withMember(data, name, value))
	if err != nil {
		return err
	}
	if err := os.Rename(temp, target); err != nil {
		_ = os.Remove(temp)
		return fmt.Errorf("replacing the configuration: %w", err)
	}
	return nil
}

// isObject reports whether a file is one whole JSON object, right as a configuration
// or not.
func isObject(data []byte) bool { return proto.Valid(data) && proto.IsObject(trimSpace(data)) }

// maxLinks is how many links in a row are followed.
const maxLinks = 16

// linkTarget follows symbolic links to where a file is or would be made.
func linkTarget(path string) string {
	for range maxLinks {
		next, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		path = next
	}
	return path
}

// withMember sets a member of a valid configuration, whose name needs no escapes.
func withMember(data []byte, name string, value []byte) []byte {
	if old := proto.Member(data, name); old != nil {
		at := cap(data) - cap(old) // old is a slice of data
		out := append([]byte(nil), data[:at]...)
		return append(append(out, value...), data[at+len(old):]...)
	}
	open := 0
	for data[open] != '{' {
		open++
	}
	out := append([]byte(nil), data[:open+1]...)
	out = append(append(out, "\n  \""+name+"\": "...), value...)
	for range proto.Members(data) { // there are others: the new one stands before them
		out = append(out, ',')
		break
	}
	if rest := data[open+1:]; rest[0] != '\n' {
		out = append(out, "\n  "...)
	}
	return append(out, data[open+1:]...)
}

// writeBeside writes a private temporary file in the folder of path.
func writeBeside(path string, data []byte) (temp string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".a2mcp-*") // made with mode 0600
	if err != nil {
		return "", fmt.Errorf("writing beside %s: %w", path, err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", fmt.Errorf("writing %s: %w", f.Name(), err)
	}
	return f.Name(), nil
}
