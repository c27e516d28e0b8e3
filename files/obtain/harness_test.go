package obtain

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const testPlatform = "linux/amd64"

// script is a binary small enough for tests.
var script = []byte("#!/bin/sh\nexit 0\n")

// bench is a release server and a Finder that knows it.
type bench struct {
	*Finder
	url         string
	certificate []byte
	hits        atomic.Int32

	mu      sync.Mutex
	audited []Install
}

// newBench serves with handler, on whose behalf requests are counted. PATH has nothing.
func newBench(t *testing.T, handler http.HandlerFunc) *bench {
	t.Helper()
	t.Setenv("PATH", t.TempDir())
	b := &bench{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.hits.Add(1)
		handler(w, r)
	}))
	t.Cleanup(server.Close)
	b.url, b.certificate = server.URL+"/", server.Certificate().Raw
	b.Finder = b.finder(t.TempDir(), filepath.Join(t.TempDir(), "data", "bin"), server.Client())
	return b
}

func (b *bench) finder(agentDir, dataDir string, client *http.Client) *Finder {
	return &Finder{AgentDir: agentDir, DataDir: dataDir, Client: client, platform: testPlatform, Audit: func(in Install) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.audited = append(b.audited, in)
		return nil
	}}
}

func serveBytes(data []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }
}

// tool pins data as a release of dufs; file tells the kind.
func (b *bench) tool(file string, data, inner []byte) Tool {
	asset := Asset{File: file, URL: b.url + file, Size: int64(len(data)), SHA256: digest(data)}
	if inner != nil {
		asset.Inner = digest(inner)
	}
	return Tool{Name: "dufs", Version: "9.9.9", Assets: map[string]Asset{testPlatform: asset}}
}

// fails finds tool and wants an error with all of words, the names of the asset, its pinned digest and
// the way out in it, one bad record, and nothing left behind that can be run (T14, X9).
func (b *bench) fails(t *testing.T, tool Tool, words ...string) {
	t.Helper()
	found, err := b.Find(t.Context(), tool, "")
	if err == nil {
		t.Fatalf("found %+v", found)
	}
	asset := tool.Assets[testPlatform]
	for _, word := range append(words, asset.File, asset.SHA256, "put dufs on PATH", "xfer.dufs in a2mcp.json") {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no %q in %q", word, err)
		}
	}
	if len(b.audited) != 1 || b.audited[0].Err == nil || b.audited[0].Asset != asset.File || b.audited[0].SHA256 != asset.SHA256 {
		t.Errorf("audited %+v", b.audited)
	}
	if left := executables(t, b.AgentDir, b.DataDir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if reg, err := b.readRegister(); err != nil || len(reg.Installs) != 0 {
		t.Errorf("registered: %+v, %v", reg, err)
	}
}

// works finds tool and wants the binary there with content.
func (b *bench) works(t *testing.T, tool Tool, installed bool, content []byte) Found {
	t.Helper()
	found, err := b.Find(t.Context(), tool, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(found.Path)
	if err != nil || !bytes.Equal(got, content) || found.Installed != installed || !filepath.IsAbs(found.Path) {
		t.Fatalf("found %+v with %q, %v", found, got, err)
	}
	return found
}

// executables lists what has a mode to be run, and whatever is not finished.
func executables(t *testing.T, dirs ...string) (found []string) {
	t.Helper()
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || entry.Type() == fs.ModeSymlink {
				return nil
			}
			info, err := entry.Info()
			if err == nil && (info.Mode().Perm()&0o111 != 0 || strings.HasSuffix(path, ".tmp")) {
				found = append(found, path)
			}
			return nil
		})
	}
	return found
}

type tarEntry struct {
	name, link string
	kind       byte
	data       []byte
}

func tarGz(entries ...tarEntry) []byte {
	var buf bytes.Buffer
	zipped := gzip.NewWriter(&buf)
	archive := tar.NewWriter(zipped)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		header := tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Mode: 0o755, Size: int64(len(e.data))}
		if e.kind == tar.TypeXGlobalHeader {
			header = tar.Header{Name: e.name, Typeflag: e.kind, PAXRecords: map[string]string{"comment": "x"}}
		}
		must(archive.WriteHeader(&header))
		_, err := archive.Write(e.data)
		must(err)
	}
	must(archive.Close())
	must(zipped.Close())
	return buf.Bytes()
}

func zipped(entries ...tarEntry) []byte {
	var buf bytes.Buffer
	archive := zip.NewWriter(&buf)
	for _, e := range entries {
		header := zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.kind == tar.TypeSymlink {
			header.SetMode(fs.ModeSymlink | 0o777)
		}
		w, err := archive.CreateHeader(&header)
		must(err)
		_, err = w.Write(e.data)
		must(err)
	}
	must(archive.Close())
	return buf.Bytes()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
