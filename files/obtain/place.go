package obtain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// place puts data at path as an executable file, all at once and never over anything.
func place(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the folder to install into: %w", err)
	}
	temp, err := writeTemp(path, data)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := os.Chmod(temp, 0o755); err != nil {
		return err
	}
	return putNew(temp, path)
}

// tempPattern is what os.CreateTemp names temporary files beside path by.
func tempPattern(path string) string { return "." + filepath.Base(path) + ".*.tmp" }

// writeTemp writes data, on disk when it returns, to a new file beside path that only the user can
// read, and returns its name.
func writeTemp(path string, data []byte) (temp string, err error) {
	sweep(path)
	temp, err = writeUnforked(path, data)
	if err == nil {
		err = flush(temp)
	}
	if err != nil {
		os.Remove(temp)
		return "", fmt.Errorf("writing beside %s: %w", path, err)
	}
	return temp, nil
}

// writeUnforked keeps the process from forking while the file is open for writing: a child has all
// descriptors from its fork to its exec, and as long as anybody has this one, running the file fails
// with "text file busy" (R09).
func writeUnforked(path string, data []byte) (string, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := os.CreateTemp(filepath.Dir(path), tempPattern(path)) // made with mode 0600
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	return file.Name(), errors.Join(err, file.Close())
}

// flush waits until the file is on disk: an empty one after a power failure would stand in the way.
func flush(name string) error {
	file, err := os.OpenFile(name, flushMode, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// sweep removes what writers of path left beside it that were killed. Nobody writes one of these for as
// long as a download may take.
func sweep(path string) {
	left, _ := os.ReadDir(filepath.Dir(path))
	for _, entry := range left {
		if ok, _ := filepath.Match(tempPattern(path), entry.Name()); !ok {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > totalTime {
			os.Remove(filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
}

// digestOf returns the SHA-256 of a regular file.
func digestOf(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// makeExecutable gives a verified file its mode back if a copy or a restore lost it.
func makeExecutable(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o111 != 0 {
		return err
	}
	return os.Chmod(path, 0o755)
}
