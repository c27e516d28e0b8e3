package files

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string

	page = template.Must(template.New("page").Parse(pageHTML))

	// pageCSP lets in the page's own style and script, by their hashes, and uploads to where it came
	// from; nothing else.
	pageCSP = "default-src 'none'; style-src " + sourceHash(pageCSS) + "; script-src " + sourceHash(pageJS) +
		"; img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

func sourceHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pageData is what the page shows. All links are relative: the page must not spell out the link it was
// opened by (X10).
type pageData struct {
	Style  template.CSS
	Script template.JS

	Title     string
	Crumbs    []crumb
	Here      string // relative address of this folder, ending with a slash
	Rows      []row
	Folders   int
	Files     int
	Bytes     string
	Query     string // what was searched for
	Columns   []column
	Exists    bool
	Write     bool
	Truncated bool
	Piece     int64 // bytes that one upload request may carry
	Expires   string
	Ends      string // the same time for people
}

type crumb struct{ Name, Href string }

type column struct{ Name, Class, Href, Arrow string }

type row struct {
	Name, Href, Size, Time, Stamp, Kind string
	Bytes, Mtime                        int64
	Dir, Link                           bool
}

// tunnelPiece stays under the 100 MB that a tunnel lets through in one request.
const tunnelPiece = 90 << 20

func (x *exchange) sendPage(entries []entry, exists, truncated bool) error {
	x.w.Header().Set("Content-Security-Policy", pageCSP)
	x.w.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
	if x.r.Method == http.MethodHead {
		return x.send("text/html; charset=utf-8", "")
	}
	d := pageData{
		Style: template.CSS(pageCSS), Script: template.JS(pageJS),
		Query: x.query.Get("q"), Exists: exists, Write: x.write, Truncated: truncated,
		Piece:   min(tunnelPiece, x.s.o.MaxBody()),
		Expires: stamp(x.l.expires), Ends: x.l.expires.UTC().Format("2006-01-02 15:04 MST"),
	}
	d.Here, d.Crumbs = x.trail()
	d.Title = d.Crumbs[len(d.Crumbs)-1].Name
	d.Columns = x.columns(d.Here)
	var total int64
	for _, e := range entries {
		d.Rows = append(d.Rows, newRow(d.Here, e))
		if e.Dir {
			d.Folders++
		} else {
			d.Files++
			total += e.Size
		}
	}
	d.Bytes = sizeText(total)
	var b strings.Builder
	if err := page.Execute(&b, d); err != nil {
		return err
	}
	return x.send("text/html; charset=utf-8", b.String())
}

// trail is the way from the shared folder to this one, as addresses relative to the one that the
// browser has, with or without a slash at its end.
func (x *exchange) trail() (here string, crumbs []crumb) {
	here = "./"
	parts := strings.Split(x.rel, "/")
	if !x.slash {
		last := parts[len(parts)-1]
		if x.rel == "." {
			last = path.Base(x.prefix) // xfer, or the link's part
		}
		here = "./" + escapePath(last) + "/"
	}
	crumbs = []crumb{{filepath.Base(x.l.real), here}}
	if x.rel == "." {
		return here, crumbs
	}
	crumbs[0].Href = here + strings.Repeat("../", len(parts))
	for i, p := range parts {
		crumbs = append(crumbs, crumb{p, here + strings.Repeat("../", len(parts)-1-i)})
	}
	return here, crumbs
}

// columns are the heads of the table, each a link that sorts by it, the other way round the second time.
func (x *exchange) columns(here string) []column {
	by, desc := x.query.Get("sort"), x.query.Get("order") == "desc"
	if by == "" {
		by, desc = "name", false
	}
	keep := ""
	if q := x.query.Get("q"); q != "" {
		keep = "&q=" + escapePath(q)
	}
	cols := []column{{Name: "Name", Class: "name"}, {Name: "Size", Class: "size"}, {Name: "Modified", Class: "mtime"}}
	for i := range cols {
		c := &cols[i]
		direction := "asc"
		if by == c.Class {
			c.Arrow = "ascending"
			if desc {
				c.Arrow = "descending"
			} else {
				direction = "desc"
			}
		}
		c.Href = here + "?sort=" + c.Class + "&order=" + direction + keep
	}
	return cols
}

func newRow(here string, e entry) row {
	t := e.info.ModTime().UTC()
	r := row{
		Name: visible(e.Name), Href: here + escapePath(e.Name), Size: sizeText(e.Size), Bytes: e.Size, Mtime: e.Mtime,
		Time: t.Format("2006-01-02 15:04"), Stamp: t.Format(time.RFC3339), Dir: e.Dir, Link: strings.HasPrefix(e.Type, "Symlink"),
		Kind: kind(e),
	}
	if e.Dir {
		r.Href += "/"
		r.Size = strconv.FormatInt(e.Size, 10) + " items"
		switch {
		case e.Size == 1:
			r.Size = "1 item"
		case e.Size >= dirCount:
			r.Size = strconv.Itoa(dirCount) + "+ items"
		}
	}
	return r
}

// visible shows a name's control characters, those that turn the writing round, and what is no text as
// the replacement character (F4).
func visible(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c < ' ', c >= 0x7f && c < 0xa0, c >= 0x202a && c <= 0x202e, c >= 0x2066 && c <= 0x2069:
			return '\uFFFD'
		}
		return c
	}, strings.ToValidUTF8(name, "\uFFFD"))
}

// kind picks a row's icon.
func kind(e entry) string {
	if e.Dir {
		return "dir"
	}
	switch strings.ToLower(path.Ext(e.Name)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".avif", ".bmp", ".ico", ".heic", ".tif", ".tiff":
		return "image"
	case ".mp4", ".mkv", ".webm", ".mov", ".avi", ".mp3", ".flac", ".ogg", ".wav", ".m4a", ".opus":
		return "media"
	case ".zip", ".gz", ".tgz", ".xz", ".zst", ".bz2", ".7z", ".tar", ".rar", ".jar", ".deb", ".rpm", ".dmg", ".iso":
		return "pack"
	case ".txt", ".md", ".log", ".csv", ".pdf", ".doc", ".docx", ".odt", ".rtf", ".html", ".tex":
		return "text"
	case ".go", ".c", ".h", ".cc", ".cpp", ".rs", ".py", ".js", ".ts", ".tsx", ".sh", ".ps1", ".java", ".rb", ".css",
		".json", ".yaml", ".yml", ".toml", ".xml", ".sql", ".mod", ".sum":
		return "code"
	}
	return "file"
}
