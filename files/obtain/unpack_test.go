package obtain

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"slices"
	"strings"
	"testing"
)

var binaryEntry = tarEntry{name: "dufs", data: script}

// X9: what is verified is unpacked, whatever lies beside the binary.
func TestUnpack(t *testing.T) {
	for file, data := range map[string][]byte{
		"a.tar.gz": tarGz(tarEntry{name: "pax", kind: tar.TypeXGlobalHeader}, tarEntry{name: "./", kind: tar.TypeDir}, tarEntry{name: "README", data: []byte("x")},
			tarEntry{name: "./dufs", data: script}, tarEntry{name: "doc/dufs", data: []byte("a page")}),
		"b.tgz":   tarGz(binaryEntry),
		"c.zip":   zipped(tarEntry{name: "doc/"}, tarEntry{name: "doc/dufs", data: []byte("a page")}, binaryEntry),
		"d64.zip": zip64(),
		"e.bin":   script,
	} {
		b := newBench(t, serveBytes(data))
		inner := script
		if file == "e.bin" {
			inner = nil
		}
		b.works(t, b.tool(file, data, inner), true, script)
	}
}

// X9: entries may not leave the folder, nor be there twice, nor be anything but files; sizes are bounded.
func TestCraftedArchives(t *testing.T) {
	for file, c := range map[string]struct {
		data []byte
		word string
	}{
		"up.tar.gz":       {tarGz(tarEntry{name: "../dufs", data: script}), "leaves the folder"},
		"after.tar.gz":    {tarGz(binaryEntry, tarEntry{name: "a/../../x", data: script}), "leaves the folder"},
		"absolute.tar.gz": {tarGz(binaryEntry, tarEntry{name: "/etc/x", data: script}), "leaves the folder"},
		"windows.tar.gz":  {tarGz(binaryEntry, tarEntry{name: `..\x`, data: script}), "leaves the folder"},
		"drive.tar.gz":    {tarGz(binaryEntry, tarEntry{name: `C:x`, data: script}), "leaves the folder"},
		"symlink.tar.gz":  {tarGz(tarEntry{name: "dufs", link: "/bin/sh", kind: tar.TypeSymlink}), "is a link"},
		"hardlink.tar.gz": {tarGz(tarEntry{name: "x", data: script}, tarEntry{name: "dufs", link: "x", kind: tar.TypeLink}), "is a link"},
		"fifo.tar.gz":     {tarGz(binaryEntry, tarEntry{name: "x", kind: tar.TypeFifo}), "special file"},
		"twice.tar.gz":    {tarGz(binaryEntry, tarEntry{name: "./dufs", data: script}), "twice"},
		"missing.tar.gz":  {tarGz(tarEntry{name: "bin/dufs", data: script}), `no "dufs"`},
		"folder.tar.gz":   {tarGz(tarEntry{name: "dufs/", kind: tar.TypeDir}), `no "dufs"`},
		"cut.tar.gz":      {tarGz(binaryEntry)[:60], "unexpected EOF"},
		"no.tar.gz":       {script, "gzip"},
		"other.tar.gz":    {tarGz(tarEntry{name: "dufs", data: []byte("#!/bin/sh\nevil\n")}), "inside has sha256"},
		"up.zip":          {zipped(binaryEntry, tarEntry{name: "../x", data: script}), "leaves the folder"},
		"absolute.zip":    {zipped(tarEntry{name: "/dufs", data: script}), "leaves the folder"},
		"windows.zip":     {zipped(binaryEntry, tarEntry{name: `..\x`, data: script}), "leaves the folder"},
		"symlink.zip":     {zipped(tarEntry{name: "dufs", data: []byte("/bin/sh"), kind: tar.TypeSymlink}), "is a link"},
		"twice.zip":       {zipped(binaryEntry, binaryEntry), "twice"},
		"missing.zip":     {zipped(tarEntry{name: "bin/dufs", data: script}), `no "dufs"`},
		"no.zip":          {script, "zip"},
		"other.zip":       {zipped(tarEntry{name: "dufs", data: []byte("#!/bin/sh\nevil\n")}), "inside has sha256"},
		"lie.zip":         {lyingZip(), "unpacking"},
		"huge.zip":        {hugeZip(), "unpacks to more than"},
		"kind.rar":        {script, "no kind of archive"},
	} {
		b := newBench(t, serveBytes(c.data))
		t.Log(file)
		b.fails(t, b.tool(file, c.data, script), c.word)
	}
}

// X9: a bomb costs what the bound is, in a file beside the binary too.
func TestBombs(t *testing.T) {
	for name, size := range map[string]int64{"dufs": testLimit + 1, "beside": testLimit + 1} {
		if _, err := unpack("x.tar.gz", tarBomb(name, size), "dufs", testLimit); err == nil || !strings.Contains(err.Error(), "unpacks to more than") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const testLimit = 1 << 20

// tarBomb says to hold 1 GB of nothing and holds size bytes of it.
func tarBomb(name string, size int64) []byte {
	var buf bytes.Buffer
	zipped := gzip.NewWriter(&buf)
	archive := tar.NewWriter(zipped)
	must(archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: 1 << 30}))
	_, err := io.CopyN(archive, zeros{}, size)
	must(err)
	must(zipped.Close())
	return buf.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// zip64 has the sizes of its entry in the extra field alone.
func zip64() []byte {
	data := zipped(binaryEntry)
	// Central header: sizes at 20 and 24, lengths of name and extra at 28 and 30; end record: size at 12.
	at := bytes.Index(data, []byte("PK\x01\x02"))
	end := bytes.Index(data, []byte("PK\x05\x06"))
	extra := append([]byte{1, 0, 16, 0}, slices.Concat(data[at+24:at+28], make([]byte, 4), data[at+20:at+24], make([]byte, 4))...)
	central := slices.Clone(data[at:end])
	for i := 20; i < 28; i++ {
		central[i] = 0xff
	}
	central[30] = byte(len(extra))
	central = append(central, extra...)
	tail := slices.Clone(data[end:])
	tail[12] = byte(len(central))
	return slices.Concat(data[:at], central, tail)
}

// lyingZip says that its binary has fewer bytes than it has.
func lyingZip() []byte {
	data := zipped(binaryEntry)
	at := bytes.Index(data, []byte("PK\x01\x02"))
	data[at+24] = 3
	return data
}

// hugeZip says that its binary has 2 GB.
func hugeZip() []byte {
	data := zipped(binaryEntry)
	at := bytes.Index(data, []byte("PK\x01\x02"))
	data[at+27] = 0x7f
	return data
}

// X9: no archive makes unpack panic or give up more than the bound.
func FuzzUnpack(f *testing.F) {
	for _, data := range [][]byte{tarGz(binaryEntry), tarGz(tarEntry{name: "../dufs", data: script}), zipped(binaryEntry), zip64(), lyingZip(), {}} {
		f.Add(data, true)
		f.Add(data, false)
	}
	f.Fuzz(func(t *testing.T, data []byte, isZip bool) {
		file := "x.tar.gz"
		if isZip {
			file = "x.zip"
		}
		content, err := unpack(file, data, "dufs", testLimit)
		if err != nil && content != nil || len(content) > testLimit {
			t.Errorf("%d bytes, %v", len(content), err)
		}
	})
}
