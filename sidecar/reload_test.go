package sidecar

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// F2, C01: every way in which editors save is seen within 3 s.
func TestWatchSeesEverySave(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a2mcp.json")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(path, "0")
	seen := make(chan string, 16)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = watchFile(ctx, path, func() {
			data, _ := os.ReadFile(path)
			seen <- string(data)
		})
	}()
	defer func() { stop(); <-ended }()
	expect := func(how, want string) {
		t.Helper()
		deadline := time.After(3 * time.Second)
		for {
			select {
			case got := <-seen:
				if got == want {
					return
				}
			case <-deadline:
				t.Fatalf("%s: not seen within 3 s", how)
			}
		}
	}
	for n := range 5 { // as vim does
		text := fmt.Sprint("renamed ", n)
		write(path+"~", text)
		if err := os.Rename(path+"~", path); err != nil {
			t.Fatal(err)
		}
		expect("rename", text)
	}
	write(path, "in place")
	expect("truncate and write", "in place")

	real := filepath.Join(dir, "elsewhere")
	write(real, "linked")
	if err := os.Symlink(real, path+"~"); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
	expect("link swapped in", "linked")
	write(real, "linked and changed")
	expect("file behind the link", "linked and changed")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("removed", "")
	write(path, "new")
	expect("made anew", "new")
}
