package sidecar

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// watch watches a file; the returned function waits until a text is seen in it.
func watch(t *testing.T, path string) (expect func(how, want string)) {
	t.Helper()
	seen := make(chan string, 64)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = watchFile(ctx, path, func() {
			data, _ := os.ReadFile(path)
			seen <- string(data)
		})
	}()
	t.Cleanup(func() { stop(); <-ended })
	return func(how, want string) {
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
}

// F2, C01: every way in which editors save is seen within 3 s.
func TestWatchSeesEverySave(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "a2mcp.json")
	write(t, path, "0")
	expect := watch(t, path)
	for n := range 5 { // as vim does
		text := fmt.Sprint("renamed ", n)
		write(t, path+"~", text)
		rename(t, path+"~", path)
		expect("rename", text)
	}
	write(t, path, "in place")
	expect("truncate and write", "in place")

	real := filepath.Join(dir, "elsewhere")
	write(t, real, "linked")
	if err := os.Symlink(real, path+"~"); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	rename(t, path+"~", path)
	expect("link swapped in", "linked")
	write(t, real, "linked and changed")
	expect("file behind the link", "linked and changed")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("removed", "")
	write(t, path, "new")
	expect("made anew", "new")
}

// F2, C01: a folder that is moved away and replaced, by a link too, and a file that is a link into another folder, saved
// there by renaming.
func TestWatchSeesWhatHappensAroundTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "a2mcp.json"), "in "+name)
	}
	current := filepath.Join(dir, "current")
	rename(t, filepath.Join(dir, "a"), current)
	path := filepath.Join(current, "a2mcp.json")
	expect := watch(t, path)
	expect("first look", "in a")
	rename(t, current, filepath.Join(dir, "old"))
	rename(t, filepath.Join(dir, "b"), current)
	expect("folder replaced", "in b")
	write(t, path, "edited in b")
	expect("edited in the new folder", "edited in b")

	rename(t, current, filepath.Join(dir, "b"))
	if err := os.Symlink("c", current); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	expect("folder replaced by a link", "in c")
	other := filepath.Join(dir, "b", "linked.json")
	write(t, other, "linked")
	if err := os.Symlink(other, path+"~"); err != nil {
		t.Fatal(err)
	}
	rename(t, path+"~", path)
	expect("a link into another folder", "linked")
	write(t, other+"~", "saved there")
	rename(t, other+"~", other)
	expect("saved there by renaming", "saved there")
}

// F2: a file that somebody goes on writing is read all the same.
func TestWatchOfAFileThatNeverRests(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a2mcp.json")
	write(t, path, "0")
	expect := watch(t, path)
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for tick := time.NewTicker(debounce / 4); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				now := time.Now()
				_ = os.Chtimes(path, now, now)
			}
		}
	}()
	defer func() { close(done); <-gone }()
	write(t, path, "edited")
	expect("a file that is touched all the time", "edited")
}
