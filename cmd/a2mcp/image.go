package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// saveImage writes an image to a new file and returns its path.
func saveImage(dir, tool string, index int, mime, data string) (string, error) {
	image, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return "", failed(exitProtocol, "the answer is no tool result: an image: %v", err)
	}
	suffix := map[string]string{"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}[mime]
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '_'
		}
		return r
	}, tool)
	for n := index; ; n++ {
		path := filepath.Join(dir, name+"-"+strconv.Itoa(n)+suffix)
		err := writeNew(path, image)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return "", failed(exitUnwritten, "the answer came, but an image could not be saved: %v", err)
		}
		return path, nil
	}
}

// writeNew makes a file, or leaves none.
func writeNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
