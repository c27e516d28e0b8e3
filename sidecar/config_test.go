package sidecar

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const testToken = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"

// F1: every wrong field is named, with what was expected; the token never shows.
func TestConfigNamesEveryWrongField(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"port":"8080"}`, `port: expected a whole number from 0 to 65535, got "8080"`},
		{`{"port":-1}`, `port: expected`},
		{`{"port":65536}`, `port: expected`},
		{`{"port":1.5}`, `port: expected`},
		{`{"host":""}`, `host: expected`},
		{`{"host":7}`, `host: expected`},
		{`{"host_llm":"Deny"}`, `host_llm: expected "allow" or "deny", got "Deny"`},
		{`{"audit":"on"}`, `audit: expected "best-effort" or "required"`},
		{`{"auditMaxKB":0}`, `auditMaxKB: expected`},
		{`{"maxBody":"1"}`, `maxBody: expected`},
		{`{"origins":"http://a"}`, `origins: expected a list`},
		{`{"origins":["http://a/path"]}`, `origins: expected a list`},
		{`{"xfer":[]}`, `xfer: expected an object`},
		{`{"xfer":{"server":"ftp"}}`, `xfer.server: expected "builtin" or "dufs"`},
		{`[]`, `not a JSON object`},
		{"\ufeff{}", `byte order mark`},
		{"{\n\"port\":1,\n}", `line 3 is not JSON`},
		{`{"token":"secret-and-short"}`, `token: expected a string of at least 32 characters`}, // A3
		{`{"token":""}`, `token: expected`},
		{`{"token":null}`, `token: expected`},
		{`{"token":"` + strings.Repeat("x", 31) + ` y"}`, `token: expected`},
		{`{"token":"` + strings.Repeat("x", 40) + "\u00a0" + `"}`, `token: expected`},
	} {
		_, _, err := parseConfig([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.text, err, c.want)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "xxxxxxx") {
			t.Errorf("%s: the error shows the token: %v", c.text, err)
		}
	}
	_, _, err := parseConfig([]byte(`{"port":"a","host":"","audit":1}`))
	for _, field := range []string{"port:", "host:", "audit:"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("all problems at once: %v lacks %s", err, field)
		}
	}
}

// F1: unknown and repeated fields are warnings; of two equal ones the last counts.
func TestConfigWarnings(t *testing.T) {
	cfg, warnings, err := parseConfig([]byte(`{"prot":1,"port":1,"port":2,"xfer":{"speed":9}}`))
	if err != nil || cfg.Port != 2 {
		t.Fatalf("port %d, %v", cfg.Port, err)
	}
	if got := strings.Join(warnings, "\n"); !strings.Contains(got, "prot is not a field") ||
		!strings.Contains(got, "port stands twice") || !strings.Contains(got, "xfer.speed is not a field") {
		t.Errorf("warnings: %s", got)
	}
}

// A3, F1: a missing file is made with mode 0600 and a token of 43 characters; a
// missing token is added and nothing else changes.
func TestConfigIsMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "a2mcp.json")
	cfg, _, err := loadConfig(path)
	if err != nil || len(cfg.Token) != 43 {
		t.Fatalf("token of %d characters, %v", len(cfg.Token), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	for _, text := range []string{"{}", "{\n}", `{"port":0}`, "{\n  \"port\": 0,\n  \"x\": [1e2]\n}\n"} {
		path := filepath.Join(t.TempDir(), "a2mcp.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, _, err := loadConfig(path)
		after, _ := os.ReadFile(path)
		if err != nil || len(cfg.Token) != 43 || !strings.Contains(string(after), string(cfg.Token)) {
			t.Errorf("%q: token %d, %v; file %q", text, len(cfg.Token), err, after)
		}
		if rest := strings.TrimPrefix(text, "{"); !strings.HasSuffix(string(after), rest) {
			t.Errorf("%q became %q", text, after)
		}
	}
}

// A3: a file with a bad token is left untouched.
func TestConfigWithBadTokenIsUntouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a2mcp.json")
	const text = `{"token": "short", "port": 0}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := loadConfig(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want an error that names the file", err)
	}
	if after, _ := os.ReadFile(path); string(after) != text {
		t.Errorf("the file became %q", after)
	}
}

// F1: two first starts at once end with one token.
func TestConfigOfTwoFirstStarts(t *testing.T) {
	for range 50 {
		path := filepath.Join(t.TempDir(), "a2mcp.json")
		tokens := make([]Secret, 8)
		var starts sync.WaitGroup
		for i := range tokens {
			starts.Go(func() {
				cfg, _, err := loadConfig(path)
				if err != nil {
					t.Error(err)
				}
				tokens[i] = cfg.Token
			})
		}
		starts.Wait()
		for _, token := range tokens {
			if token != tokens[0] {
				t.Fatal("two first starts have different tokens")
			}
		}
	}
}

// F3: rotation replaces the token and leaves every other byte, behind a link too.
func TestWriteToken(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "a2mcp.json")
	if err := os.WriteFile(file, []byte(`{ "a":1e2, "token" : "`+testToken+`" , "z":"<>"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	if err := writeToken(link, "new"); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(file); string(after) != `{ "a":1e2, "token" : "new" , "z":"<>"}` {
		t.Errorf("the file became %q", after)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
}

// A5: a Secret never shows itself.
func TestSecretIsRedacted(t *testing.T) {
	cfg := Config{Token: testToken}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if out := fmt.Sprintf(verb, cfg); strings.Contains(out, testToken[:8]) {
			t.Errorf("%s shows the token: %s", verb, out)
		}
	}
}
