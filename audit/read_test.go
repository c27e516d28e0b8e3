package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"
)

// startLine and doneLine are records as they stand in a log.
func startLine(id string) string {
	return `{"ts":"2026-12-01T05:00:00.000Z","id":"` + id + `","sid":"s1","phase":"start","tool":"read","args":{"path":"x"}}` + "\n"
}

func doneLine(id string) string {
	return `{"ts":"2026-12-01T05:00:01.500Z","id":"` + id + `","sid":"s1","phase":"done","tool":"read","isError":false,"ms":1500.25,"args":{"path":"x"}}` + "\n"
}

func pair(id string) string { return startLine(id) + doneLine(id) }

func put(t *testing.T, path string, parts ...string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(parts, "")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func openReader(t *testing.T, path string) *Reader {
	t.Helper()
	r, err := OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// ended reads on and returns the ids of the calls that ended.
func ended(t *testing.T, r *Reader) []string {
	t.Helper()
	got := []string{}
	if err := r.Read(func(c *Call) error { got = append(got, c.ID); return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// L1, L2, L7: pairs are joined, across generations too; what has no end is
// pending, what has no start stands alone; what is no record is counted.
func TestReaderJoinsPairs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	put(t, path+".2", startLine("oldest"), "no record\n")
	put(t, path+".1", startLine("crashed"), doneLine("rotated away"), `{"ts":"2026-12-01T05:00:00.0`+"\n")
	put(t, path, "\n", doneLine("oldest"), startLine("running"),
		`{"ts":"2026-12-01T06:00:00.000Z","id":"x","sid":null,"phase":"done","tool":"xfer","isError":true,"ms":0,"args":{"action":"close","path":"/ä"}}`+"\n",
		strings.Replace(doneLine("running"), `"x"`, `"`+strings.Repeat("x", 2*maxLine)+`"`, 1), pair("last")[:len(pair("last"))-1])
	r := openReader(t, path)
	var got []string
	show := func(c *Call) error {
		got = append(got, fmt.Sprintf("%s %s %s %v lone=%v", c.ID, c.State, c.Took, c.Last.Sub(c.Time), c.Lone))
		return nil
	}
	if err := errors.Join(r.Read(show), r.Rest(show)); err != nil {
		t.Fatal(err)
	}
	want(t, "ended", got, "rotated away done 1.50025s 0s lone=true", "oldest done 1.50025s 1.5s lone=false",
		"x error 0s 0s lone=true", "last done 1.50025s 1.5s lone=false")
	got = nil
	for _, c := range r.Pending() {
		got = append(got, c.ID)
	}
	want(t, "pending", got, "crashed", "running")
	if r.Broken() != 3 {
		t.Errorf("%d broken lines, want 3", r.Broken())
	}
}

// L2: what the log says stays as it stands there.
func TestCallAsJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	put(t, path, startLine("a"), doneLine("a"), startLine("b"),
		`{"ts":"2026-12-01T06:00:00Z","id":"c","sid":null,"phase":"done","tool":"<t>","isError":true,"ms":1e1,"args":{ "n":1.0,`+"\t"+`"n":9007199254740993}}`+"\n")
	r := openReader(t, path)
	var got []string
	show := func(c *Call) error { got = append(got, string(c.AppendJSON(nil))); return nil }
	if err := r.Read(show); err != nil {
		t.Fatal(err)
	}
	_ = show(r.Pending()[0])
	want(t, "JSON", got,
		`{"ts":"2026-12-01T05:00:00.000Z","id":"a","sid":"s1","tool":"read","state":"done","ms":1500.25,"args":{"path":"x"}}`,
		`{"ts":"2026-12-01T06:00:00Z","id":"c","sid":null,"tool":"<t>","state":"error","ms":1e1,"args":{ "n":1.0,"n":9007199254740993}}`,
		`{"ts":"2026-12-01T05:00:00.000Z","id":"b","sid":"s1","tool":"read","state":"pending","ms":null,"args":{"path":"x"}}`)
}

func TestReaderWithoutLog(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenReader(filepath.Join(dir, "log")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no log: %v", err)
	}
	if _, err := OpenReader(dir); err == nil || !strings.Contains(err.Error(), "folder") {
		t.Errorf("a folder: %v", err)
	}
}

// A log is not kept in memory.
func TestReaderKeepsLittle(t *testing.T) {
	const calls, size = 600, 2500
	path := filepath.Join(t.TempDir(), "log")
	var lines strings.Builder
	for i := range calls {
		lines.WriteString(strings.ReplaceAll(pair(fmt.Sprint(i)), `"x"`, `"`+strings.Repeat("x", size)+`"`))
	}
	put(t, path, lines.String())
	lines.Reset()
	r, seen := openReader(t, path), 0
	before, most := heap(), uint64(0)
	err := r.Read(func(*Call) error {
		if seen++; seen%(calls/3) == 0 {
			most = max(most, heap())
		}
		return nil
	})
	if err != nil || seen != calls || most > before+calls*size/4 {
		t.Errorf("%d calls in %d bytes more than %d, %v", seen, most-before, before, err)
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// FuzzParse: whatever stands in a log, a call is one line of JSON that moves no
// cursor (F4).
func FuzzParse(f *testing.F) {
	f.Add([]byte(pair("a")[:len(startLine("a"))]))
	f.Add([]byte(`{"ts":"2026-12-01T06:00:00Z","id":"` + "\u009b\u202e" + `","sid":"\u001b","phase":"done","tool":"` + "\x7f\xff" + `","isError":true,"ms":1,"args":["` + "\u2028\xff" + `",` + "\t" + `1]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		phase, c, ok := parse(text)
		if !ok {
			return
		}
		if phase == Done {
			c.begin(nil)
		}
		out := c.AppendJSON(nil)
		if !json.Valid(out) || !utf8.Valid(out) || strings.ContainsFunc(string(out), movesCursor) {
			t.Fatalf("%q became %q", text, out)
		}
	})
}

// L4: records that come through rotations are read once each, whenever the reader looks.
func TestReaderFollowsRotations(t *testing.T) {
	for _, every := range []int{1, 3, 25} {
		path := filepath.Join(t.TempDir(), "log")
		keep := 1 + every // what one look may miss is still there at the next
		l := openLog(t, path, Options{MaxBytes: 400, Keep: keep})
		write := func(id string, phase Phase) {
			if err := l.Write(Record{Time: time.Now(), ID: id, Phase: phase, Tool: "t"}); err != nil {
				t.Fatal(err)
			}
		}
		write("first", Start)
		r := openReader(t, path)
		var got, all []string
		for i := range 60 {
			id := fmt.Sprint(i)
			write(id, Start)
			write(id, Done)
			if all = append(all, id); i%every == 0 {
				got = append(got, ended(t, r)...)
			}
		}
		want(t, fmt.Sprint("a look every ", every), append(got, ended(t, r)...), all...)
		if len(r.Pending()) != 1 || r.Broken() != 0 || len(r.read) > keep+1 || len(r.sources) != 1 {
			t.Errorf("%d pending, %d broken, %d heads, %d files", len(r.Pending()), r.Broken(), len(r.read), len(r.sources))
		}
	}
}

// L4: a reader beside writers that rotate all the time.
func TestReaderBesideWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := openLog(t, path, Options{MaxBytes: 600, Keep: 200})
	if err := l.Write(Record{Time: time.Now(), ID: "first", Phase: Start}); err != nil {
		t.Fatal(err)
	}
	const writers, calls = 4, 40
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range calls {
				for _, phase := range []Phase{Start, Done} {
					if err := l.Write(Record{Time: time.Now(), ID: fmt.Sprint(w, "-", i), Phase: phase, Tool: "t"}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	written := make(chan struct{})
	go func() { all.Wait(); close(written) }()
	r, seen := openReader(t, path), map[string]int{}
	for done := false; !done; {
		select {
		case <-written:
			done = true
		default:
		}
		for _, id := range ended(t, r) {
			seen[id]++
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s was read %d times", id, n)
		}
	}
	if len(seen) != writers*calls || len(r.Pending()) != 1 || r.Broken() != 0 {
		t.Errorf("%d calls of %d, %d pending, %d broken", len(seen), writers*calls, len(r.Pending()), r.Broken())
	}
}

// What else can happen to a log while it is read.
func TestReaderFollows(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(path string)
		want   []string
		next   string // what comes then; empty: a call
	}{
		{"half a line, then the rest", func(path string) {
			add(t, path, startLine("z")+doneLine("z")[:30])
		}, nil, doneLine("z")[30:]},
		{"emptied and shorter", func(path string) { put(t, path, doneLine("a2")) }, []string{"a2"}, ""},
		{"emptied and longer", func(path string) { put(t, path, pair("b"), pair("c"), pair("d")) }, []string{"b", "c", "d"}, ""},
		{"removed and made anew", func(path string) {
			os.Remove(path)
			put(t, path, pair("b"))
		}, []string{"b"}, ""},
		{"rotated, and no new log yet", func(path string) {
			add(t, path, pair("b"))
			move(t, path, path+".1")
		}, []string{"b"}, ""},
		{"rotated after a crash", func(path string) {
			add(t, path, doneLine("b")[:40])
			move(t, path, path+".1")
			put(t, path, pair("c"))
		}, []string{"c"}, ""},
		{"rotated twice", func(path string) {
			add(t, path, pair("b"))
			move(t, path, path+".2")
			put(t, path+".1", pair("c"))
			put(t, path, pair("d"))
		}, []string{"b", "c", "d"}, ""},
		{"written anew with one line more", func(path string) {
			put(t, path+".new", pair("old"), pair("a"), pair("b"))
			move(t, path+".new", path)
		}, []string{"b"}, ""},
		{"rotated with one generation more", func(path string) {
			move(t, path+".1", path+".2")
			move(t, path, path+".1")
			put(t, path, pair("b"))
		}, []string{"b"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			put(t, path+".1", pair("older"))
			put(t, path, pair("old"), pair("a"))
			r := openReader(t, path)
			want(t, "at first", ended(t, r), "older", "old", "a")
			if runtime.GOOS == "windows" && strings.Contains(c.name, "removed") {
				t.Skip("a file that is open keeps its name here until it is closed")
			}
			c.change(path)
			want(t, "then", ended(t, r), c.want...)
			if c.next == "" {
				c.next = pair("z")
			}
			add(t, path, c.next)
			want(t, "in the end", ended(t, r), "z")
			want(t, "and no more", ended(t, r))
		})
	}
}

// L4: where the file that was read is gone there may be a gap, told once, before
// what comes after it; where it is a generation, or the same under a new inode,
// there is none.
func TestReaderTellsGaps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	put(t, path, pair("a"))
	r := openReader(t, path)
	want(t, "at first", ended(t, r), "a")
	rotate := func(next string) {
		move(t, path, path+".1")
		put(t, path, pair(next))
	}
	rotate("b")
	want(t, "one rotation", ended(t, r), "b")
	put(t, path+".new", pair("b"), pair("c"))
	move(t, path+".new", path)
	want(t, "written anew", ended(t, r), "c")
	if r.Gaps() != 0 {
		t.Errorf("%d gaps where nothing was lost", r.Gaps())
	}
	add(t, path, pair("d"))
	rotate("lost")
	rotate("e")
	rotate("f")
	before := map[string]int{}
	if err := r.Read(func(c *Call) error { before[c.ID] = r.Gaps(); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := map[string]int{"d": 0, "e": 1, "f": 1}; !maps.Equal(before, want) {
		t.Errorf("gaps before each call: %v, want %v", before, want)
	}
	want(t, "and no more", ended(t, r))
	if r.Gaps() != 1 {
		t.Errorf("%d gaps, want 1", r.Gaps())
	}
}

// L4: a reader that comes in the middle of a rotation, when .1 has become .2 and
// the log is not yet .1.
func TestReaderInTheMiddleOfARotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	put(t, path+".2", pair("older"))
	put(t, path, pair("old"))
	r := openReader(t, path)
	want(t, "at first", ended(t, r), "older", "old")
	move(t, path, path+".1")
	want(t, "without a log", ended(t, r))
	want(t, "another reader without a log", ended(t, openReader(t, path)), "older", "old")
	put(t, path, pair("new"))
	want(t, "then", ended(t, r), "new")
}
