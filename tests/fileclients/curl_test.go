//go:build unix

package fileclients

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// curl runs curl with the token and returns what it printed. The configuration goes by standard input,
// so that the token is on no command line.
func (b *bridge) curl(args ...string) (string, error) { return b.curlWith(b.Token, args...) }

func (b *bridge) curlWith(token string, args ...string) (string, error) {
	b.t.Helper()
	return run(b.t, fmt.Sprintf("header = \"Authorization: Bearer %s\"\n", token),
		append([]string{program(b.t, "curl"), "-q", "-sS", "--expect100-timeout", "60", "-K", "-"}, args...)...)
}

// status is curl's exit and, printed by it, status and bytes of body sent.
func (b *bridge) status(token string, args ...string) string {
	b.t.Helper()
	if !slices.Contains(args, "-o") {
		args = append([]string{"-o", "/dev/null"}, args...)
	}
	out, err := b.curlWith(token, append([]string{"-w", "%{http_code} %{size_upload}"}, args...)...)
	if err != nil {
		return fmt.Sprintf("%s (%v)", out, err)
	}
	return out
}

// X7, F05: an upload, an upload over an empty file, and one over a file with content; F09: with Expect
// a refused body is never sent.
func TestCurlUploads(t *testing.T) {
	program(t, "curl")
	b := startBridge(t)
	dir, from := t.TempDir(), t.TempDir()
	b.share(dir)
	small, empty := write(t, strings.Repeat("0123456789", 300_000), from, "small"), write(t, "", from, "empty")
	huge := write(t, "", from, "huge")
	if err := os.Truncate(huge, 128<<20+1); err != nil {
		t.Fatal(err)
	}
	wrong := strings.Repeat("x", 43)
	const expect = "Expect: 100-continue"
	for _, c := range []struct {
		name, want, token string
		args              []string
	}{
		{"new, with Expect", "201 3000000", b.Token, []string{"-H", expect, "-T", small, b.xfer("deep/er/one")}},
		{"new, without", "201 3000000", b.Token, []string{"-H", "Expect:", "-T", small, b.xfer("two")}},
		{"chunked", "201 3000373", b.Token, []string{"-H", "Transfer-Encoding: chunked", "-T", small, b.xfer("three")}},
		{"empty", "201 0", b.Token, []string{"-T", empty, b.xfer("four")}},
		{"over the empty one", "201 3000000", b.Token, []string{"-T", small, b.xfer("four")}},
		{"over content, with Expect", "403 0", b.Token, []string{"-H", expect, "-T", small, b.xfer("four")}},
		{"over content, without", "403 3000000", b.Token, []string{"-H", "Expect:", "-T", small, b.xfer("four")}},
		{"wrong token, with Expect", "401 0", wrong, []string{"-H", expect, "-T", small, b.xfer("five")}},
		{"too large, with Expect", "413 0", b.Token, []string{"-H", expect, "-T", huge, b.xfer("five")}},
		{"DELETE", "403 0", b.Token, []string{"-X", "DELETE", b.xfer("four")}},
		{"PROPFIND of everything", "400 0", b.Token, []string{"-X", "PROPFIND", "-H", "Depth: infinity", b.xfer("")}}, // F22
	} {
		if got := b.status(c.token, c.args...); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for _, name := range []string{"deep/er/one", "two", "three", "four"} {
		if got := read(t, dir, name); got != read(t, small) {
			t.Errorf("%s has %d bytes", name, len(got))
		}
	}
	if got := read(t, dir, "five"); got != "<none>" {
		t.Errorf("a refused upload left %d bytes", len(got))
	}
	b.share(dir, "readOnly:=true")
	if got := b.status(b.Token, "-H", expect, "-T", small, b.xfer("six")); got != "403 0" { // X1
		t.Errorf("read-only: %s", got)
	}
}

// F01: names that need encoding, there and back, and what curl reads of a folder.
func TestCurlNames(t *testing.T) {
	program(t, "curl")
	b := startBridge(t)
	dir, to := t.TempDir(), t.TempDir()
	b.share(dir)
	names := map[string]string{"a b.txt": "a%20b.txt", "你.txt": "%E4%BD%A0.txt", "100%.txt": "100%25.txt", "a#b": "a%23b", "q?x": "q%3Fx", "a+b&c": "a+b&c"}
	for name, encoded := range names {
		file := write(t, "content of "+name, t.TempDir(), "f")
		if got := b.status(b.Token, "-T", file, b.xfer(encoded)); !strings.HasPrefix(got, "201") {
			t.Errorf("PUT %s: %s", encoded, got)
		}
		if got := read(t, dir, name); got != "content of "+name {
			t.Errorf("%s: %q", name, got)
		}
		out := filepath.Join(to, "out")
		if got := b.status(b.Token, "-o", out, b.xfer(encoded)); got != "200 0" || read(t, out) != "content of "+name {
			t.Errorf("GET %s: %s %q", encoded, got, read(t, out))
		}
	}
	plain, err := b.curl(b.xfer(""))
	if err != nil || strings.Contains(plain, "<") || strings.Count(plain, "\n") != len(names) {
		t.Errorf("the listing for curl: %v\n%s", err, plain)
	}
	if got, err := b.curl(b.xfer("?json")); err != nil || !strings.Contains(got, `"uri_prefix": "/xfer/"`) || strings.Count(got, `"path_type": "File"`) != len(names) {
		t.Errorf("?json: %v\n%s", err, got)
	}
	if got, err := b.curl(b.xfer("?simple")); err != nil || !strings.Contains(got, "你.txt\n") {
		t.Errorf("?simple: %v\n%s", err, got)
	}
	if got, err := b.curl("-OJ", "--output-dir", to, b.xfer("a%20b.txt")); err != nil || read(t, to, "a b.txt") != "content of a b.txt" {
		t.Errorf("curl -OJ: %v %s", err, got)
	}
	head, err := b.curlWith("wrong-wrong-wrong-wrong-wrong-wrong-wrong", "-D", "-", b.xfer(""))
	if err != nil || !strings.Contains(head, " 401 ") || strings.Contains(strings.ToLower(head), "www-authenticate") {
		t.Errorf("without the token: %v\n%s", err, head)
	}
}

// X5: ranges, a download gone on with, and conditional requests.
func TestCurlDownloads(t *testing.T) {
	program(t, "curl")
	b := startBridge(t)
	dir, to := t.TempDir(), t.TempDir()
	content := noise(5_000_000)
	write(t, string(content), dir, "f.bin")
	b.share(dir)
	for rng, want := range map[string]string{"0-9": string(content[:10]), "4999990-": string(content[4_999_990:]), "-10": string(content[4_999_990:])} {
		if got, err := b.curl("-f", "-r", rng, b.xfer("f.bin")); err != nil || got != want {
			t.Errorf("range %s: %v, %d bytes", rng, err, len(got))
		}
	}
	if got, err := b.curl("-f", "-r", "0-9,20-29", b.xfer("f.bin")); err != nil || !strings.Contains(got, "Content-Range: bytes 20-29/5000000") {
		t.Errorf("two ranges: %v\n%q", err, got)
	}
	part := write(t, string(content[:1_234_567]), to, "part")
	out, err := b.curl("-f", "-C", "-", "-o", part, "-w", "%{http_code} %{size_download}", b.xfer("f.bin"))
	if err != nil || out != "206 3765433" || read(t, part) != string(content) {
		t.Errorf("going on with a download: %v %s", err, out)
	}
	if out, err := b.curl("-C", "-", "-o", part, "-w", "%{http_code}", b.xfer("f.bin")); err != nil || out != "416" || read(t, part) != string(content) {
		t.Errorf("going on with a complete download: %v %s", err, out)
	}
	etag := filepath.Join(to, "etag")
	if out, err := b.curl("-o", "/dev/null", "--etag-save", etag, b.xfer("f.bin")); err != nil {
		t.Errorf("%v %s", err, out)
	}
	if got := b.status(b.Token, "--etag-compare", etag, b.xfer("f.bin")); got != "304 0" {
		t.Errorf("with the ETag: %s", got)
	}
	if got := b.status(b.Token, "-z", filepath.Join(dir, "f.bin"), b.xfer("f.bin")); got != "304 0" {
		t.Errorf("with the time: %s", got)
	}
	if out, err := b.curl("-f", "-I", b.xfer("f.bin")); err != nil || !strings.Contains(out, "Content-Length: 5000000\r\n") {
		t.Errorf("HEAD: %v\n%s", err, out)
	}
}

// F16: 300 MB in pieces that a tunnel lets through, one of them broken off on the way (X5).
func TestCurlPieces(t *testing.T) {
	program(t, "curl")
	b := startBridge(t)
	dir, from := t.TempDir(), t.TempDir()
	if usage := fmt.Sprint(b.share(dir)["usage"]); !strings.Contains(usage, "PATCH") {
		t.Errorf("the usage does not tell of pieces: %s", usage)
	}
	content := noise(300_000_000)
	const piece = 90_000_000
	length := func() string {
		out, err := b.curl("-f", "-I", b.xfer("big.bin"))
		_, after, _ := strings.Cut(out, "Content-Length: ")
		if err != nil {
			t.Fatalf("HEAD: %v\n%s", err, out)
		}
		return strings.SplitN(after, "\r", 2)[0]
	}
	for at := 0; at < len(content); at += piece {
		end := min(at+piece, len(content))
		file := write(t, string(content[at:end]), from, "piece")
		args := []string{"-T", file, b.xfer("big.bin")}
		want := fmt.Sprintf("201 %d", end-at)
		if at > 0 {
			args = append([]string{"-X", "PATCH", "-H", "X-Update-Range: append"}, args...)
			want = fmt.Sprintf("204 %d", end-at)
		}
		if at == piece {
			if got := b.status(b.Token, append(args, "--limit-rate", "20M", "--max-time", "0.5")...); !strings.Contains(got, "exit status 28") {
				t.Errorf("a piece to be broken off: %s", got)
			}
		}
		// The broken one is given up a moment after its client has gone.
		got := b.status(b.Token, args...)
		for tries := 0; strings.HasPrefix(got, "409") && tries < 50; tries++ {
			got = b.status(b.Token, args...)
		}
		if got != want {
			t.Fatalf("piece at %d: %s, want %s", at, got, want)
		}
		if got := length(); got != fmt.Sprint(end) {
			t.Fatalf("length %s after the piece at %d", got, at)
		}
	}
	sum := sha256.Sum256(content)
	if got, err := b.curl("-f", b.xfer("big.bin?hash")); err != nil || got != hex.EncodeToString(sum[:]) {
		t.Errorf("?hash: %v %s", err, got)
	}
	b.stop()
	if log := b.output.String() + read(t, b.Log); strings.Contains(log, b.Token) { // A5
		t.Errorf("the token is in what was written:\n%s", log)
	}
}

// noise is n bytes that do not repeat.
func noise(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data)
	return data
}
