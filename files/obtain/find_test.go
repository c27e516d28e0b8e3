package obtain

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, path string, data []byte, mode os.FileMode) string {
	t.Helper()
	must(os.MkdirAll(filepath.Dir(path), 0o755))
	must(os.WriteFile(path, data, mode))
	must(os.Chmod(path, mode))
	return path
}

// X9: a configured value with a separator is used as that path, and nothing else is tried.
func TestConfiguredPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes")
	}
	b := newBench(t, serveBytes(script))
	tool := b.tool("dufs-bare", script, nil)
	dir := t.TempDir()
	good := write(t, filepath.Join(dir, "my dufs"), script, 0o755)
	plain := write(t, filepath.Join(dir, "plain"), script, 0o644)
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	for _, path := range []string{good, "./my dufs", "~/my dufs", dir + "/../" + filepath.Base(dir) + "/my dufs"} {
		if found, err := b.Find(t.Context(), tool, path); err != nil || found != (Found{Path: good}) {
			t.Errorf("%q: %+v, %v", path, found, err)
		}
	}
	for path, word := range map[string]string{
		plain: "not an executable file", dir + "/": "not an executable file", dir + "/none": "no such file",
		plain + "/x": "not a directory", `bin\dufs`: "no such file",
	} {
		found, err := b.Find(t.Context(), tool, path)
		if err == nil || !strings.Contains(err.Error(), word) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "xfer.dufs") {
			t.Errorf("%q: %+v, %v", path, found, err)
		}
	}
	if b.hits.Load() != 0 || b.audited != nil {
		t.Errorf("%d requests, audited %v", b.hits.Load(), b.audited)
	}
}

// X9: without a separator the name is looked for on PATH, never in the current folder, be it that
// PATH names it.
func TestPath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes")
	}
	b := newBench(t, serveBytes(script))
	tool := b.tool("dufs-bare", script, nil)
	project, first, second := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, filepath.Join(project, "dufs"), script, 0o755)
	write(t, filepath.Join(project, "bin", "dufs"), script, 0o755)
	write(t, filepath.Join(first, "dufs"), script, 0o644)
	must(os.Mkdir(filepath.Join(first, "dufs-dev"), 0o755))
	plain := write(t, filepath.Join(second, "dufs"), script, 0o755)
	dev := write(t, filepath.Join(second, "dufs-dev"), script, 0o755)
	t.Chdir(project)
	list := func(dirs ...string) string { return strings.Join(dirs, string(filepath.ListSeparator)) }
	t.Setenv("PATH", list("", ".", "bin", first, second))
	for configured, want := range map[string]string{"": plain, "dufs": plain, "dufs-dev": dev} {
		if found, err := b.Find(t.Context(), tool, configured); err != nil || found != (Found{Path: want}) {
			t.Errorf("%q: %+v, %v", configured, found, err)
		}
	}
	if b.hits.Load() != 0 {
		t.Error("downloaded")
	}
	t.Setenv("PATH", list("", ".", "bin", first))
	b.works(t, tool, true, script)
	if found, err := b.Find(t.Context(), tool, "dufs-dev"); err != nil || found.Path != b.audited[0].Path {
		t.Errorf("a name that is not on PATH: %+v, %v", found, err)
	}
}

// X9: elsewhere, a message that says so.
func TestNoPinForPlatform(t *testing.T) {
	b := newBench(t, serveBytes(script))
	b.platform = "plan9/mips"
	_, err := b.Find(t.Context(), Cloudflared, "")
	if err == nil || !strings.Contains(err.Error(), "plan9/mips") || !strings.Contains(err.Error(), "xfer.cloudflared") || b.audited != nil {
		t.Errorf("%v, audited %v", err, b.audited)
	}
	b.platform, b.DataDir = testPlatform, ""
	if _, err = b.Find(t.Context(), b.tool("dufs-bare", script, nil), ""); err == nil || !strings.Contains(err.Error(), "home folder") {
		t.Error(err)
	}
}

// X9, L5: an install that has to be recorded and cannot be is not used.
func TestInstallNotRecorded(t *testing.T) {
	b := newBench(t, serveBytes(script))
	b.Audit = func(Install) error { return errors.New("the log is full") }
	found, err := b.Find(t.Context(), b.tool("dufs-bare", script, nil), "")
	if err == nil || !strings.Contains(err.Error(), "the log is full") || found.Path != "" {
		t.Errorf("found %+v, %v", found, err)
	}
}

// X9: an earlier install is used, whatever PATH or the server are by then; it is 0755, the register 0600.
func TestInstallOnce(t *testing.T) {
	b := newBench(t, serveBytes(script))
	tool := b.tool("dufs-bare", script, nil)
	b.Audit = func(in Install) error {
		if in.Err != nil || in.Path == "" {
			t.Errorf("audited %+v", in)
		}
		b.audited = append(b.audited, in)
		if reg, err := b.readRegister(); err != nil || len(reg.Installs) != len(b.audited)-1 {
			t.Errorf("registered before the record: %v, %v", reg, err)
		}
		return nil
	}
	found := b.works(t, tool, true, script)
	if want := filepath.Join(b.DataDir, "dufs-9.9.9"); found.Path != want {
		t.Errorf("installed at %s, not %s", found.Path, want)
	}
	for path, mode := range map[string]os.FileMode{found.Path: 0o755, b.registerPath(): 0o600} {
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	must(os.Chmod(found.Path, 0o644)) // as a restored backup may be
	b.works(t, tool, false, script)
	if runtime.GOOS != "windows" && len(executables(t, b.DataDir)) != 1 {
		t.Error("not executable again")
	}
	if b.hits.Load() != 1 || len(b.audited) != 1 {
		t.Errorf("%d downloads, audited %+v", b.hits.Load(), b.audited)
	}

	newer := tool
	newer.Version = "10.0.0"
	if next := b.works(t, newer, true, script); next.Path == found.Path {
		t.Error("a new version in the place of the old")
	}
	b.works(t, tool, false, script)
	if reg, err := b.readRegister(); err != nil || len(reg.Installs) != 2 {
		t.Errorf("register: %+v, %v", reg, err)
	}
}

// X9: names with .exe on Windows.
func TestWindowsName(t *testing.T) {
	data := zipped(tarEntry{name: "dufs.exe", data: script})
	b := newBench(t, serveBytes(data))
	tool := b.tool("dufs.zip", data, script)
	b.platform = "windows/amd64"
	tool.Assets[b.platform] = tool.Assets[testPlatform]
	if found := b.works(t, tool, true, script); filepath.Base(found.Path) != "dufs-9.9.9.exe" {
		t.Error(found.Path)
	}
}

// X9: an install whose file has changed by one byte is neither used nor written over; its hash is reported.
func TestChangedInstall(t *testing.T) {
	b := newBench(t, serveBytes(script))
	tool := b.tool("dufs-bare", script, nil)
	found := b.works(t, tool, true, script)
	changed := slices.Clone(script)
	changed[len(changed)-1] ^= 1
	write(t, found.Path, changed, 0o755)
	_, err := b.Find(t.Context(), tool, "")
	if err == nil || !strings.Contains(err.Error(), digest(changed)) || !strings.Contains(err.Error(), found.Path) {
		t.Errorf("%v", err)
	}
	if got, _ := os.ReadFile(found.Path); string(got) != string(changed) || b.hits.Load() != 1 {
		t.Errorf("%d downloads, holds %q", b.hits.Load(), got)
	}
	if len(b.audited) != 2 || b.audited[1].Err == nil {
		t.Errorf("audited %+v", b.audited)
	}
	must(os.Remove(found.Path))
	b.works(t, tool, true, script)
}

// X9: a register that is broken or has a digest changed costs no second download, for the file is what
// is pinned; a path in it that leads to anything else is not followed.
func TestChangedRegister(t *testing.T) {
	b := newBench(t, serveBytes(script))
	tool := b.tool("dufs-bare", script, nil)
	found := b.works(t, tool, true, script)
	good, err := os.ReadFile(b.registerPath())
	must(err)
	sum := digest(script)
	flipped := strings.ReplaceAll(string(good), `"binarySha256": "`+sum[:1], `"binarySha256": "`+string("ab"[sum[0]%2]))
	if flipped == string(good) {
		flipped = strings.ReplaceAll(string(good), `"binarySha256": "`+sum[:1], `"binarySha256": "0`)
	}
	other := write(t, filepath.Join(t.TempDir(), "evil"), []byte("#!/bin/sh\nevil\n"), 0o755)
	var led register
	must(json.Unmarshal(good, &led))
	led.Installs[0].Path, led.Installs[0].Binary = other, digest([]byte("#!/bin/sh\nevil\n"))
	misled, err := json.Marshal(led)
	must(err)
	for _, text := range []string{flipped, "{", "", "[]", string(misled), `{"installs":[{"tool":"dufs","version":"9.9.9","path":"dufs"}]}`} {
		write(t, b.registerPath(), []byte(text), 0o600)
		before := len(b.audited)
		if again := b.works(t, tool, false, script); again.Path != found.Path || len(b.audited) != before+1 {
			t.Errorf("%s: found %+v, audited %+v", text, again, b.audited)
		}
		if b.works(t, tool, false, script); len(b.audited) != before+1 {
			t.Errorf("%s: not registered again", text)
		}
	}
	if b.hits.Load() != 1 {
		t.Errorf("%d downloads", b.hits.Load())
	}
}

// X9: never over what the bridge did not install, be it a file (its hash is reported), a folder or a
// link, and be it there only when the download is done.
func TestForeignFile(t *testing.T) {
	foreign := []byte("somebody's own")
	for name, make := range map[string]func(path string) error{
		digest(foreign):      func(path string) error { return os.WriteFile(path, foreign, 0o600) },
		"not a regular file": func(path string) error { return os.Mkdir(path, 0o755) },
		"a regular file":     func(path string) error { return os.Symlink("/nowhere", path) },
	} {
		b := newBench(t, nil)
		tool := b.tool("dufs-bare", script, nil)
		path := filepath.Join(b.DataDir, "dufs-9.9.9")
		must(os.MkdirAll(b.DataDir, 0o755))
		must(make(path))
		before, _ := os.Lstat(path)
		b.fails(t, tool, name, path)
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) || b.hits.Load() != 0 {
			t.Errorf("%s: %v, %d requests", name, err, b.hits.Load())
		}
	}

	b := newBench(t, nil)
	late := newBench(t, func(w http.ResponseWriter, r *http.Request) {
		write(t, filepath.Join(b.DataDir, "dufs-9.9.9"), foreign, 0o600)
		serveBytes(script)(w, r)
	})
	b.Client = late.Client
	b.url = late.url
	b.fails(t, b.tool("dufs-bare", script, nil), digest(foreign))
}

// X9: pins are complete literals: https, a version in the address, lower-case digests.
func TestPins(t *testing.T) {
	platforms := []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64"}
	sum := regexp.MustCompile(`^[0-9a-f]{64}$`)
	seen := map[string]bool{"": true}
	for _, tool := range []Tool{Dufs, Cloudflared} {
		want := platforms
		if tool.Name == "dufs" {
			want = append(slices.Clone(platforms), "windows/arm64")
		}
		if got := slices.Sorted(maps.Keys(tool.Assets)); !slices.Equal(got, want) {
			t.Errorf("%s is pinned for %v", tool.Name, got)
		}
		for platform, a := range tool.Assets {
			archive := regexp.MustCompile(`\.(tgz|tar\.gz|zip)$`).MatchString(a.File)
			switch {
			case !sum.MatchString(a.SHA256), archive && !sum.MatchString(a.Inner), !archive && a.Inner != "":
				t.Errorf("%s: digests of %+v", platform, a)
			case !strings.HasPrefix(a.URL, "https://github.com/"), !strings.HasSuffix(a.URL, tool.Version+"/"+a.File), strings.Contains(a.URL, "latest"):
				t.Errorf("%s: address of %+v", platform, a)
			case !strings.HasPrefix(a.File, tool.Name+"-"), a.Size < 1<<20, a.Size > maxDownload:
				t.Errorf("%s: name or size of %+v", platform, a)
			case seen[a.SHA256], a.Inner != "" && seen[a.Inner]:
				t.Errorf("%s: %+v has a digest of another", platform, a)
			}
			seen[a.SHA256], seen[a.Inner] = true, true
		}
	}
}

// X9: the user's data folder.
func TestDataDir(t *testing.T) {
	env := map[string]string{"LOCALAPPDATA": "/local", "XDG_DATA_HOME": "/xdg"}
	none := map[string]string{"XDG_DATA_HOME": "relative"}
	for _, c := range []struct {
		goos, home string
		env        map[string]string
		want       string
	}{
		{"linux", "/h", env, "/xdg/a2mcp/bin"},
		{"linux", "/h", none, "/h/.local/share/a2mcp/bin"},
		{"linux", "", none, ""},
		{"freebsd", "/h", nil, "/h/.local/share/a2mcp/bin"},
		{"darwin", "/h", env, "/h/Library/Application Support/a2mcp/bin"},
		{"windows", "/h", env, "/local/a2mcp/bin"},
		{"windows", "/h", none, "/h/AppData/Local/a2mcp/bin"},
	} {
		if got := dataDir(c.goos, c.home, func(k string) string { return c.env[k] }); runtime.GOOS != "windows" && got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
