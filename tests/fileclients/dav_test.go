//go:build unix

package fileclients

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// X5, X7: cadaver lists, makes a folder, stores, fetches; what a share refuses, it says so.
func TestCadaver(t *testing.T) {
	cadaver := program(t, "cadaver")
	b := startBridge(t)
	dir, from := t.TempDir(), t.TempDir()
	write(t, "there before", dir, "old.txt")
	write(t, "from cadaver", from, "new file.txt")
	b.share(dir)
	session := func(commands ...string) string {
		t.Helper()
		out, err := run(t, strings.Join(commands, "\n")+"\nquit\n", cadaver, b.proxy())
		if err != nil {
			t.Fatalf("cadaver: %v\n%s", err, out)
		}
		return out
	}
	out := session("lcd "+from, "ls", "mkcol sub", "cd sub", `put "new file.txt"`, "ls", "cd ..", "get old.txt got.txt",
		"copy old.txt copied.txt", "put got.txt old.txt", "delete old.txt", "move old.txt gone.txt", "rmcol sub")
	for _, want := range []string{"old.txt", "new file.txt", "Creating `sub': succeeded", "Deleting `old.txt': failed", "403 Forbidden"} {
		if !strings.Contains(out, want) {
			t.Errorf("cadaver did not print %q", want)
		}
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "sub", "new file.txt"): "from cadaver",
		filepath.Join(from, "got.txt"):            "there before",
		filepath.Join(dir, "copied.txt"):          "there before",
		filepath.Join(dir, "old.txt"):             "there before",
		filepath.Join(dir, "gone.txt"):            "<none>",
	} {
		if got := read(t, name); got != want {
			t.Errorf("%s: %q, want %q", filepath.Base(name), got, want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
	// F06: a lock of a new name makes it, an upload under the lock fills it.
	write(t, "locked first", from, "l.txt")
	locked := session("lcd "+from, "lock l.txt", "put l.txt", "unlock l.txt")
	if got := read(t, dir, "l.txt"); got != "locked first" {
		t.Errorf("an upload under a lock: %q\n%s", got, locked)
	}
}

// X5, X7, F22: rclone with a bearer token copies a tree up and down, lists and checks it, and is refused
// where it would remove something.
func TestRclone(t *testing.T) {
	rclone := program(t, "rclone")
	b := startBridge(t)
	dir, from, to := t.TempDir(), t.TempDir(), t.TempDir()
	big := string(noise(20_000_000))
	files := map[string]string{"a.txt": "first", "sub/b c.txt": "second", "sub/你好/ü#%.txt": "third", "empty": "", "sub/big.bin": big}
	for i := range 40 {
		files[fmt.Sprintf("many/%02d.txt", i)] = fmt.Sprint("number ", i)
	}
	for name, content := range files {
		write(t, content, from, name)
	}
	b.share(dir)
	call := func(args ...string) (string, error) {
		t.Helper()
		return run(t, "", append([]string{"env", "RCLONE_CONFIG=/dev/null", "RCLONE_WEBDAV_URL=" + b.xfer(""), "RCLONE_WEBDAV_VENDOR=other",
			"RCLONE_WEBDAV_BEARER_TOKEN=" + b.Token, "RCLONE_RETRIES=1", "RCLONE_LOW_LEVEL_RETRIES=1", rclone}, args...)...)
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := call(args...)
		if err != nil {
			t.Fatalf("rclone %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return out
	}
	must("copy", from, ":webdav:")
	for name, content := range files {
		if read(t, dir, name) != content {
			t.Errorf("%s is not the same after the copy up", name)
		}
	}
	must("check", "--download", from, ":webdav:")
	must("copy", ":webdav:", to)
	must("check", from, to)
	lines := must("lsl", ":webdav:")
	if strings.Count(lines, "\n") != len(files) || !strings.Contains(lines, "sub/你好/ü#%.txt") {
		t.Errorf("lsl:\n%s", lines)
	}
	if out := must("cat", "--offset", "2", "--count", "3", ":webdav:a.txt"); out != "rst" {
		t.Errorf("cat of a range: %q", out)
	}
	if out := must("copy", "-v", "--size-only", from, ":webdav:"); strings.Contains(out, "Copied (") {
		t.Errorf("a second copy moved files:\n%s", out)
	}
	must("copyto", ":webdav:a.txt", ":webdav:sub/again.txt")
	if got := read(t, dir, "sub", "again.txt"); got != "first" {
		t.Errorf("a copy on the server: %q", got)
	}
	// What a share does not do is an error, and all stays.
	if err := os.WriteFile(filepath.Join(from, "a.txt"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"copy", from, ":webdav:"}, {"deletefile", ":webdav:a.txt"}, {"moveto", ":webdav:a.txt", ":webdav:z.txt"}, {"purge", ":webdav:sub"}} {
		if out, err := call(args...); err == nil || !strings.Contains(out, "403") {
			t.Errorf("rclone %s: %v\n%s", args[0], err, out)
		}
	}
	if got := read(t, dir, "a.txt"); got != "first" {
		t.Errorf("a.txt: %q", got)
	}
}
