//go:build unix

package fileclients

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// names is what the listing shows, in its order, joined by `|`.
const names = `[...document.querySelectorAll("#list tbody tr:not([hidden]) td.name a > span")].map(e => e.textContent).join("|")`

// gallery is a folder with something of everything.
func gallery(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "Field notes")
	day := time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)
	for i, f := range []struct {
		name string
		size int
	}{
		{"report 2.pdf", 482_113}, {"report 10.pdf", 1_204_981}, {"README.md", 3_412}, {"data.csv", 88_201}, {"song.flac", 31_004_112},
		{"backup.tar.gz", 904_331_008}, {"photo.jpg", 2_330_118}, {"server.go", 9_120}, {"notes", 0}, {"images/one.png", 10}, {"images/two.png", 12},
		{"src/main.c", 300}, {"src/lib/util.c", 200},
	} {
		path := write(t, "", dir, f.name)
		if err := os.Truncate(path, int64(f.size)); err != nil {
			t.Fatal(err)
		}
		when := day.Add(time.Duration(i*17) * time.Hour)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("README.md", filepath.Join(dir, "latest")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// open shares a folder with a browser link and returns the link.
func (b *bridge) openBrowser(dir string, more ...string) string {
	b.t.Helper()
	link, _ := b.share(dir, append([]string{"browser:=true"}, more...)...)["browserUrl"].(string)
	if !strings.HasPrefix(link, b.xfer("")) {
		b.t.Fatalf("the browser link is %q", link)
	}
	return link
}

// want compares what an expression gives.
func (b *browser) want(expression, want string) {
	b.t.Helper()
	if got := b.eval(expression); got != want {
		b.t.Errorf("%s\n is %q\nwant %q", expression, got, want)
	}
}

// clean says that the page broke nothing and asked nobody else.
func (b *browser) clean(origin string) {
	b.t.Helper()
	for _, c := range b.complaints(origin) {
		b.t.Errorf("the browser complains: %s", c)
	}
}

// TestBrowser holds X10 and what X5 says of browsers, each part with a page and a bridge of its own.
func TestBrowser(t *testing.T) {
	c := startBrowser(t)
	for _, part := range []struct {
		name string
		f    func(*testing.T, *browser, *bridge)
	}{
		{"listing", browseListing}, {"upload", browseUpload}, {"download", browseDownload},
		{"hostile", browseHostileFiles}, {"without-scripts", browseWithoutScripts}, {"names", browseNames},
	} {
		t.Run(part.name, func(t *testing.T) {
			c.tab(t)
			part.f(t, c, startBridge(t))
		})
	}
}

// X10, X5: the listing in a browser: light and dark, sorted, searched, on a small screen.
func browseListing(t *testing.T, c *browser, b *bridge) {
	link := b.openBrowser(gallery(t))
	c.scheme("light")
	c.open(link)
	c.want(names, "images/|src/|backup.tar.gz|data.csv|latest|notes|photo.jpg|README.md|report 2.pdf|report 10.pdf|server.go|song.flac")
	c.want(`getComputedStyle(document.body).backgroundColor`, "rgb(246, 247, 249)")
	c.picture("light")
	c.scheme("dark")
	c.want(`getComputedStyle(document.body).backgroundColor`, "rgb(16, 19, 23)")
	c.picture("dark")
	c.clean(b.URL)

	c.click("th.size a")
	c.want(names, "images/|src/|notes|latest|README.md|server.go|data.csv|report 2.pdf|report 10.pdf|photo.jpg|song.flac|backup.tar.gz")
	c.click("th.size a")
	c.want(`document.querySelector("th[aria-sort]").className + " " + document.querySelector("th[aria-sort]").ariaSort`, "size descending")
	c.want(names, "backup.tar.gz|song.flac|photo.jpg|report 10.pdf|report 2.pdf|data.csv|server.go|README.md|latest|notes|src/|images/")
	c.click("th.mtime a")
	c.want(names+`.split("|").slice(2, 4).join("|")`, "report 2.pdf|report 10.pdf")
	c.scheme("light")
	c.size(360, 740)
	c.picture("phone")
	c.want(`document.documentElement.scrollWidth <= innerWidth`, "true")
	c.size(1200, 800)

	c.click(".search input")
	c.call("Input.insertText", map[string]any{"text": "REPORT"})
	c.want(names, "report 2.pdf|report 10.pdf")
	c.eval(`document.querySelector(".search input").value = ""`)
	c.call("Input.insertText", map[string]any{"text": ".c"})
	c.enter()
	c.until(`location.search === "?q=.c" && document.readyState === "complete"`)
	c.want(names, "data.csv|src/lib/util.c|src/main.c")
	c.picture("search")
	c.click("tbody tr:nth-child(2) td.name a")
	c.until(`location.pathname.endsWith("/src/lib/util.c") && document.readyState === "complete"`)
	c.open(link + "src/lib/")
	c.want(`[...document.querySelectorAll("nav a")].map(e => e.textContent).join("|")`, "Field notes|src|lib")
	c.click("nav a")
	c.until(`location.href === ` + quoted(link) + ` && document.readyState === "complete"`)
	c.want(`document.documentElement.outerHTML.includes(location.pathname.split("/")[2])`, "false") // X10
	c.clean(b.URL)
}

// enter presses the Enter key.
func (b *browser) enter() {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"})
	}
}

func quoted(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

// choose gives files to the page's own control.
func (b *browser) choose(files ...string) {
	b.t.Helper()
	b.call("Page.setInterceptFileChooserDialog", map[string]any{"enabled": true})
	b.click("#pick")
	var opened struct{ BackendNodeID int }
	b.into(b.await("Page.fileChooserOpened", nil), &opened)
	b.call("DOM.setFileInputFiles", map[string]any{"files": files, "backendNodeId": opened.BackendNodeID})
}

// X10, X7: uploading with the page's own button, with progress; what is refused is said.
func browseUpload(t *testing.T, c *browser, b *bridge) {
	dir, from := t.TempDir(), t.TempDir()
	write(t, "there before", dir, "old.txt")
	big, odd := write(t, string(noise(6_000_000)), from, "big file.bin"), write(t, "odd", from, "ü #1%.txt")
	link := b.openBrowser(dir)
	c.open(link)
	// Slow enough for progress to be seen.
	c.call("Network.emulateNetworkConditions", map[string]any{"offline": false, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 3_000_000})
	c.choose(big, odd)
	c.until(`(() => { const p = document.querySelector(".up progress"); return !!p && p.value > 0 && p.value < p.max && document.querySelector(".up .how").textContent.includes("/s") })()`)
	c.picture("uploading")
	c.until(`document.readyState === "complete" && document.querySelectorAll("#list tbody tr").length === 3`)
	c.want(names, "big file.bin|old.txt|ü #1%.txt")
	if read(t, dir, "big file.bin") != read(t, big) || read(t, dir, "ü #1%.txt") != "odd" {
		t.Error("what came is not what was sent")
	}
	c.clean(b.URL)

	c.choose(write(t, "another", from, "old.txt"))
	c.until(`!!document.querySelector(".up.bad")`)
	c.want(`document.querySelector(".up.bad .how").textContent`, "refused: a file of that name is there already")
	c.picture("refused")
	if got := read(t, dir, "old.txt"); got != "there before" {
		t.Errorf("old.txt: %q", got)
	}

	// A folder dropped on the page comes with what is in it.
	tree := filepath.Join(from, "tree")
	write(t, "leaf", tree, "branch", "leaf.txt")
	write(t, "root", tree, "root.txt")
	c.open(link)
	for _, kind := range []string{"dragEnter", "dragOver", "drop"} {
		c.call("Input.dispatchDragEvent", map[string]any{"type": kind, "x": 300, "y": 300,
			"data": map[string]any{"items": []any{}, "files": []string{tree}, "dragOperationsMask": 1}})
		if kind == "dragOver" {
			c.want(`document.querySelector("#drop").hidden`, "false")
			c.picture("drop")
		}
	}
	c.until(names + `.includes("tree/")`)
	if read(t, dir, "tree", "branch", "leaf.txt") != "leaf" || read(t, dir, "tree", "root.txt") != "root" {
		t.Error("the dropped folder is not whole")
	}

	c.open(b.openBrowser(dir, "readOnly:=true"))
	c.want(`document.querySelector("#pick") === null && document.querySelectorAll("#list tbody tr").length === 4`, "true")
}

// X10: downloading a file and a folder with the page's own links.
func browseDownload(t *testing.T, c *browser, b *bridge) {
	dir := t.TempDir()
	content := string(noise(3_000_000))
	write(t, content, dir, "ä file.bin")
	write(t, "in a folder", dir, "sub", "f.txt")
	c.open(b.openBrowser(dir))
	for _, d := range []struct{ selector, name string }{{"tbody tr:nth-child(2) td.get a", "ä file.bin"}, {"tbody tr:nth-child(1) td.get a", "sub.zip"}} {
		c.click(d.selector)
		var begun struct{ GUID, SuggestedFilename string }
		c.into(c.await("Browser.downloadWillBegin", nil), &begun)
		c.await("Browser.downloadProgress", func(p json.RawMessage) bool { return strings.Contains(string(p), `"completed"`) })
		if begun.SuggestedFilename != d.name {
			t.Errorf("%s is saved as %q", d.name, begun.SuggestedFilename)
		}
	}
	if got := read(t, c.downs, "ä file.bin"); got != content {
		t.Errorf("%d bytes came", len(got))
	}
	if got := read(t, c.downs, "sub.zip"); !strings.HasPrefix(got, "PK") || !strings.Contains(got, "f.txt") {
		t.Errorf("the archive: %d bytes", len(got))
	}
	c.clean(b.URL)
}

// X5, X10: a page that was uploaded cannot run scripts, call out or learn where it is.
func browseHostileFiles(t *testing.T, c *browser, b *bridge) {
	dir := t.TempDir()
	link := b.openBrowser(dir)
	const script = `document.title = "ran"; fetch("./?json"); parent.postMessage(location.href, "*")`
	file := write(t, `<!doctype html><title>quiet</title><body onload='`+script+`'><script>`+script+`</script>
		<img src="http://127.0.0.1:9/a.png" onerror='document.title = "ran"'><link rel=stylesheet href="http://127.0.0.1:9/a.css">
		<form action="http://127.0.0.1:9/"><button id=go>x</button></form><iframe src="./"></iframe><a id=away href="http://127.0.0.1:9/">away</a>`,
		t.TempDir(), "page.html")
	if got := b.status(b.Token, "-T", file, b.xfer("page.html")); !strings.HasPrefix(got, "201") {
		t.Fatal(got)
	}
	write(t, `<svg xmlns="http://www.w3.org/2000/svg"><title>quiet</title><script>`+strings.ReplaceAll(script, `"`, "'")+`</script></svg>`, dir, "pic.svg")
	write(t, `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>quiet</title><script>`+script+`</script></head><body/></html>`, dir, "page.xhtml")
	for _, name := range []string{"page.html", "pic.svg", "page.xhtml"} {
		c.open(link + name)
		c.want(`document.title`, "quiet")
		c.want(`self.origin`, "null")
		for _, p := range c.params("Network.responseReceived") {
			var got struct{ Response struct{ URL string } }
			c.into(p, &got)
			if url := got.Response.URL; strings.HasPrefix(url, "http") && url != link+name && url != b.URL+"favicon.ico" {
				t.Errorf("%s reached %s", name, url)
			}
		}
	}
	// A name is text in the listing, whatever it looks like.
	write(t, "", dir, `<img src=x onerror=alert(1)>.txt`)
	c.open(link)
	c.want(`document.querySelectorAll("td.name img").length`, "0")
	c.clean(b.URL)
}

// X10: what the page is without scripts.
func browseWithoutScripts(t *testing.T, c *browser, b *bridge) {
	link := b.openBrowser(gallery(t))
	c.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
	c.open(link)
	c.want(`document.querySelector("#pick").hidden`, "true")
	c.picture("no-script")
	c.click("th.size a")
	c.until(`location.search === "?sort=size&order=asc" && document.readyState === "complete"`)
	c.want(names+`.split("|")[2]`, "notes")
	c.click("th.size a")
	c.until(`location.search === "?sort=size&order=desc" && document.readyState === "complete"`)
	c.want(names+`.split("|")[0]`, "backup.tar.gz")
	c.click(".search input")
	c.call("Input.insertText", map[string]any{"text": "util"})
	c.enter()
	c.until(`location.search === "?q=util" && document.readyState === "complete"`)
	c.want(names, "src/lib/util.c")
	c.click("td.get a")
	var begun struct{ SuggestedFilename string }
	c.into(c.await("Browser.downloadWillBegin", nil), &begun)
	if begun.SuggestedFilename != "util.c" {
		t.Errorf("saved as %q", begun.SuggestedFilename)
	}
	c.clean(b.URL)
}

// X5: names of every kind, and a listing that is long.
func browseNames(t *testing.T, c *browser, b *bridge) {
	dir := t.TempDir()
	odd := []string{"<b>bold</b> & \"quotes\".html", "space  two  spaces.txt", "emoji 🦊 日本語 العربية.txt", strings.Repeat("long-name-", 20) + ".txt",
		"tab\tand\nline.txt", "turn\u202etxt.exe", "100%25.txt", "a#b?c=d.txt", "back\\slash", "..dots..", "ＷＩＤＥ.txt", "e\u0301.txt", "not\xffutf8"}
	for _, name := range odd {
		write(t, name, dir, name)
	}
	link := b.openBrowser(dir)
	c.open(link)
	c.picture("names")
	c.want(`document.querySelectorAll("#list tbody tr").length`, fmt.Sprint(len(odd)))
	// Each link leads to its file.
	got := c.eval(`Promise.all([...document.querySelectorAll("td.name a")].map(a => fetch(a.href).then(r => r.status))).then(all => all.join(" "))`)
	if got != strings.TrimSpace(strings.Repeat("200 ", len(odd))) {
		t.Errorf("the links answer %s", got)
	}
	c.size(360, 740)
	c.want(`document.documentElement.scrollWidth <= innerWidth`, "true")
	c.picture("names-phone")
	c.clean(b.URL)

	long := t.TempDir()
	for i := range 3000 {
		write(t, "", long, fmt.Sprintf("measurement %d.dat", i))
	}
	c.size(1200, 800)
	c.open(b.openBrowser(long))
	c.want(`document.querySelectorAll("#list tbody tr").length`, "3000")
	c.want(names+`.split("|").slice(9, 12).join("|")`, "measurement 9.dat|measurement 10.dat|measurement 11.dat")
	c.picture("long")
	c.open(b.openBrowser(t.TempDir()))
	c.picture("empty")
	c.clean(b.URL)
}
