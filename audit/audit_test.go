package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func openLog(t *testing.T, path string, o Options) *Log {
	t.Helper()
	l, err := Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// ids reads every generation of a log, checks each line and returns its ids.
func ids(t *testing.T, path string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	names, _ := filepath.Glob(path + "*")
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			var r struct{ ID string }
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Errorf("%s: %q: %v", name, lines.Text(), err)
			}
			found[r.ID] = true
		}
	}
	return found
}

// L2: field order, null session, the pair's own fields; A09: nothing forges a line.
func TestRecordFormat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var secrets Secrets
	secrets.Add(testToken)
	l := openLog(t, path, Options{Secrets: &secrets})
	at := time.Date(2026, 12, 1, 6, 7, 8, 9_900_000, time.FixedZone("", 3600))
	for _, r := range []Record{
		{Time: at, ID: "i1", SID: "s1", Phase: Start, Tool: "read", Args: []byte(`{"path":"<a>"}`)},
		{Time: at, ID: "i1", SID: "s1", Phase: Done, Tool: "read", IsError: true, Took: 1234567 * time.Nanosecond, Args: []byte(`{"path":"<a>"}`)},
		{Time: at, ID: "i2", Phase: Done, Tool: "x\r\n{\"ts\":\x1b[0m " + testToken},
	} {
		if err := l.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"ts":"2026-12-01T05:07:08.009Z","id":"i1","sid":"s1","phase":"start","tool":"read","args":{"path":"<a>"}}
{"ts":"2026-12-01T05:07:08.009Z","id":"i1","sid":"s1","phase":"done","tool":"read","isError":true,"ms":1.235,"args":{"path":"<a>"}}
{"ts":"2026-12-01T05:07:08.009Z","id":"i2","sid":null,"phase":"done","tool":"x\r\n{\"ts\":\u001b[0m <token>","isError":false,"ms":0,"args":{}}
`
	if got, _ := os.ReadFile(path); string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if info, _ := os.Stat(path); runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 { // L4
		t.Errorf("mode %v", info.Mode())
	}
}

// L4: writers at the edge of a rotation lose nothing, and it is rotated once.
func TestRotationUnderLoad(t *testing.T) {
	for _, writers := range []int{60, 600} {
		path := filepath.Join(t.TempDir(), "log")
		filler := bytes.Repeat([]byte(`{"id":"filler"}`+"\n"), 512<<10/16)
		if err := os.WriteFile(path, filler[:512<<10-208], 0o600); err != nil {
			t.Fatal(err)
		}
		l := openLog(t, path, Options{})
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				for _, phase := range []Phase{Start, Done} {
					if err := l.Write(Record{ID: fmt.Sprint(i, phase), Phase: phase, Tool: "t"}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if found := ids(t, path); len(found) != 2*writers+1 {
			t.Errorf("%d writers: %d records found, want %d", writers, len(found)-1, 2*writers)
		}
		if info, err := os.Stat(path + ".1"); err != nil || info.Size() < 500<<10 {
			t.Errorf("%d writers: the first generation was rotated over: %v", writers, err)
		}
	}
}

// L4: as many generations as asked for, the newest as .1.
func TestKeep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := openLog(t, path, Options{MaxBytes: 300, Keep: 3})
	for i := range 40 {
		if err := l.Write(Record{ID: strconv.Itoa(i), Phase: Start}); err != nil {
			t.Fatal(err)
		}
	}
	names, _ := filepath.Glob(path + "*")
	if len(names) != 4 {
		t.Errorf("%v, want the log and three generations", names)
	}
	newest, _ := os.ReadFile(path + ".1")
	oldest, _ := os.ReadFile(path + ".3")
	if bytes.Compare(newest, oldest) <= 0 {
		t.Errorf(".1 is older than .3:\n%s\n%s", newest, oldest)
	}
}

// L4: a log that was removed is made anew; one that others could read is closed
// to them.
func TestRemovedLogIsMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, path, Options{})
	for _, id := range []string{"1", "2"} {
		if err := l.Write(Record{ID: id, Phase: Start}); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		if !ids(t, path)[id] {
			t.Errorf("record %s is not in the log", id)
		}
		if err := os.Remove(path); err != nil && runtime.GOOS != "windows" {
			t.Fatal(err)
		}
	}
}

// L5: a full disk costs records and nothing else; the first and every hundredth
// are told, with path and cause.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	var told bytes.Buffer
	l := openLog(t, "/dev/full", Options{Log: slog.New(slog.NewTextHandler(&told, nil))})
	for range 201 {
		if l.Write(Record{ID: "x", Phase: Start}) == nil {
			t.Fatal("a write to a full disk succeeded")
		}
	}
	if l.Failures() != 201 {
		t.Errorf("%d failures counted, want 201", l.Failures())
	}
	if n := strings.Count(told.String(), "\n"); n != 3 || !strings.Contains(told.String(), "path=/dev/full") || !strings.Contains(told.String(), "no space left") {
		t.Errorf("%d lines:\n%s", n, told.String())
	}
}

// L5: an unusable path is told at the start and no error, unless records are
// required; it is used as soon as it can be.
func TestUnusablePath(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "missing", "log")
	if _, err := Open(path, Options{Required: true}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("required: %v, want an error that names the path", err)
	}
	if _, err := Open(dir, Options{Required: true}); err == nil {
		t.Error("a folder was taken for a log")
	}
	var told bytes.Buffer
	l := openLog(t, path, Options{Log: slog.New(slog.NewTextHandler(&told, nil))})
	if !strings.Contains(told.String(), path) || l.Failures() != 1 {
		t.Errorf("%d failures, told %q", l.Failures(), told.String())
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(Record{ID: "later", Phase: Start}); err != nil || !ids(t, path)["later"] {
		t.Errorf("not in use once it could be: %v", err)
	}
}

// L4: a rotation that cannot be done loses nothing and is told.
func TestRotationThatFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.MkdirAll(filepath.Join(path+".1", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	l := openLog(t, path, Options{MaxBytes: 200, Log: slog.New(slog.NewTextHandler(&told, nil))})
	for i := range 20 {
		if err := l.Write(Record{ID: strconv.Itoa(i), Phase: Start}); err != nil {
			t.Fatal(err)
		}
	}
	data, _ := os.ReadFile(path)
	if n := bytes.Count(data, []byte("\n")); n != 20 {
		t.Errorf("%d records, want 20", n)
	}
	if !strings.Contains(told.String(), "not rotated") {
		t.Errorf("told %q", told.String())
	}
}

// L4: a torn line at the end, left by a process that died, spoils no other.
func TestTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(`{"id":"whole"}`+"\n"+`{"id":"to`), 0o600); err != nil {
		t.Fatal(err)
	}
	l := openLog(t, path, Options{})
	if err := l.Write(Record{ID: "next", Phase: Start}); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(path)
	if lines := strings.Split(strings.TrimSpace(string(data)), "\n"); len(lines) != 3 || !strings.Contains(lines[2], `"next"`) {
		t.Errorf("%q", lines)
	}
}

// L4: several processes with one log lose nothing to each other's rotations.
func TestProcessesShareALog(t *testing.T) {
	const processes, records = 4, 500
	path := filepath.Join(t.TempDir(), "log")
	if dir := os.Getenv("A2MCP_TEST_LOG"); dir != "" {
		return // a child; see TestMain
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for n := range processes {
		all.Go(func() {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), "A2MCP_TEST_LOG="+path, fmt.Sprint("A2MCP_TEST_N=", n))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", n, err, out)
			}
		})
	}
	all.Wait()
	if found := ids(t, path); len(found) != processes*records {
		t.Errorf("%d records of %d", len(found), processes*records)
	}
	if names, _ := filepath.Glob(path + ".*"); len(names) < 10 {
		t.Errorf("only %d rotations: the test does not test", len(names))
	}
}

func TestMain(m *testing.M) {
	path := os.Getenv("A2MCP_TEST_LOG")
	if path == "" {
		os.Exit(m.Run())
	}
	l, err := Open(path, Options{MaxBytes: 10 << 10, Keep: 900, Required: true})
	for i := 0; i < 500 && err == nil; i++ {
		err = l.Write(Record{ID: os.Getenv("A2MCP_TEST_N") + "-" + strconv.Itoa(i), Phase: Start, Tool: "t"})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// L4, F2: options may change while the log is in use; after Close nothing is
// written.
func TestConfigureAndClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := openLog(t, path, Options{})
	l.Configure(Options{MaxBytes: 100})
	for _, id := range []string{"1", "2"} {
		if err := l.Write(Record{ID: id, Phase: Start}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path + ".1"); err != nil {
		t.Error("the new limit does not count")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Write(Record{ID: "3", Phase: Start}); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func benchLog(b *testing.B) *Log {
	l, err := Open(filepath.Join(b.TempDir(), "log"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	b.ReportAllocs()
	return l
}

var benchRecord = Record{
	Time: time.Now(), ID: "6f1c9a52-8a43-4a5e-9c0d-0d1f5b3b9e11", SID: "0b8a3c55-2a1d-4f0e-8d27-5c1f2a9b7e10",
	Phase: Done, Tool: "bash", Took: 12 * time.Millisecond, Args: []byte(`{"command":"go test ./...","timeout":60}`),
}

func BenchmarkWrite(b *testing.B) {
	l := benchLog(b)
	for b.Loop() {
		if err := l.Write(benchRecord); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteParallel(b *testing.B) {
	l := benchLog(b)
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := l.Write(benchRecord); err != nil {
				b.Error(err)
			}
		}
	})
}
