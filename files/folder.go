package files

import (
	"cmp"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxFound is how many results a search gives.
const maxFound = 10_000

// listing is what ?json says of a folder, in dufs's names.
type listing struct {
	Href         string  `json:"href"`
	Kind         string  `json:"kind"`
	URIPrefix    string  `json:"uri_prefix"`
	AllowUpload  bool    `json:"allow_upload"`
	AllowDelete  bool    `json:"allow_delete"`
	AllowSearch  bool    `json:"allow_search"`
	AllowArchive bool    `json:"allow_archive"`
	DirExists    bool    `json:"dir_exists"`
	Auth         bool    `json:"auth"`
	User         *string `json:"user"`
	Paths        []entry `json:"paths"`
	Truncated    bool    `json:"truncated,omitempty"` // a search found more than maxFound
}

// getFolder answers GET and HEAD of a folder.
func (x *exchange) getFolder(f *os.File) error {
	if x.flag("zip") {
		return x.zip()
	}
	if x.r.Method == http.MethodHead {
		return x.sendListing(nil, true) // the folder is not read for it
	}
	v := x.l.own.look()
	if q := x.query.Get("q"); q != "" {
		found, err := x.search(v, q)
		if err != nil {
			return err
		}
		return x.sendListing(found, true)
	}
	var entries []entry
	err := x.l.readDir(v, f, x.rel, func(e entry) error {
		if e.Dir {
			e.Size = x.l.count(v, path.Join(x.rel, e.Name))
		}
		entries = append(entries, e)
		return x.ctx.Err()
	})
	if err != nil {
		return err
	}
	return x.sendListing(entries, true)
}

// search finds names that hold q, in this folder and below.
func (x *exchange) search(v ownView, q string) ([]entry, error) {
	q = strings.ToLower(q)
	var found []entry
	err := x.walk(v, x.rel, func(e entry) error {
		if !strings.Contains(strings.ToLower(path.Base(e.Name)), q) {
			return nil
		}
		if len(found) > maxFound {
			return io.EOF
		}
		if e.Dir {
			e.Size = x.l.count(v, path.Join(x.rel, e.Name))
		}
		found = append(found, e)
		return nil
	}, func(string) {})
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return found, nil
}

// sendListing sends entries in the form that was asked for.
func (x *exchange) sendListing(entries []entry, exists bool) error {
	truncated := len(entries) > maxFound && x.query.Get("q") != "" // a folder is listed whole
	if truncated {
		entries = entries[:maxFound]
	}
	order(entries, x.query.Get("sort"), x.query.Get("order"))
	x.w.Header().Set("Cache-Control", "no-cache")
	switch {
	case x.flag("json"):
		href := "/"
		if x.rel != "." {
			href += x.rel
		}
		if entries == nil {
			entries = []entry{}
		}
		return x.sendJSON(listing{
			Href: href, Kind: "Index", URIPrefix: x.prefix, AllowUpload: x.write, AllowSearch: true, AllowArchive: true,
			DirExists: exists, Auth: true, Paths: entries, Truncated: truncated,
		})
	case x.flag("simple"):
		return x.send("text/html; charset=utf-8", simple(entries))
	case wantsPlain(x.r):
		return x.send("text/plain; charset=utf-8", plain(entries))
	}
	return x.sendPage(entries, exists, truncated)
}

// wantsPlain says that a listing will be read on a terminal.
func wantsPlain(r *http.Request) bool {
	agent := strings.ToLower(r.UserAgent())
	for _, tool := range []string{"curl/", "httpie/", "aria2/"} {
		if strings.HasPrefix(agent, tool) {
			return true
		}
	}
	return false
}

// simple is one name a line, as dufs writes it.
func simple(entries []entry) string {
	var b strings.Builder
	for _, e := range entries {
		// A line end in a name must not look like another name.
		b.WriteString(strings.NewReplacer("\n", "&#10;", "\r", "&#13;").Replace(html.EscapeString(e.Name)))
		if e.Dir {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// plain is a table for the terminal: time, size, name.
func plain(entries []entry) string {
	var b strings.Builder
	for _, e := range entries {
		size, name := sizeText(e.Size), printable(e.Name)
		if e.Dir {
			size, name = "-", name+"/"
		}
		b.WriteString(e.info.ModTime().UTC().Format("2006-01-02 15:04"))
		b.WriteString("  " + strings.Repeat(" ", max(0, 8-len(size))) + size + "  " + name + "\n")
	}
	return b.String()
}

// printable is a name that cannot act on a terminal (F4).
func printable(name string) string {
	if q := strconv.Quote(name); q != `"`+name+`"` {
		return q
	}
	return name
}

// sizeText is a size as people read it.
func sizeText(n int64) string {
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, unit := float64(n), -1
	for f >= 1024 && unit < 5 {
		f, unit = f/1024, unit+1
	}
	digits := 1
	if f >= 100 {
		digits = 0
	}
	return strconv.FormatFloat(f, 'f', digits, 64) + " " + "KMGTPE"[unit:unit+1] + "B"
}

// send sends a text whole.
func (x *exchange) send(contentType, text string) error {
	x.w.Header().Set("Content-Type", contentType)
	if x.r.Method == http.MethodHead {
		return nil
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = io.WriteString(x.w, text)
	return nil
}

func (x *exchange) sendJSON(v any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	return x.send("application/json", strings.TrimRight(b.String(), "\n"))
}

// order sorts folders before files, then by what was asked for; desc turns all of it round.
func order(entries []entry, by, direction string) {
	slices.SortFunc(entries, func(a, b entry) int {
		if a.Dir != b.Dir {
			if a.Dir {
				return -1
			}
			return 1
		}
		c := 0
		switch by {
		case "mtime":
			c = cmp.Compare(a.Mtime, b.Mtime)
		case "size":
			c = cmp.Compare(a.Size, b.Size)
		}
		return cmp.Or(c, natural(a.Name, b.Name), cmp.Compare(a.Name, b.Name))
	})
	if by != "" && direction == "desc" {
		slices.Reverse(entries)
	}
}
