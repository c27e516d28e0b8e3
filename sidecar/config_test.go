package sidecar

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/a2mcp/a2mcp/audit"
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
		{`{"host":"127.0.0.1:80"}`, `host: expected an address such as "127.0.0.1", without a port`},
		{`{"host":"[::1]"}`, `host: expected`},
		{`{"host":"300.1.1.1"}`, `host: expected`},
		{`{"host":"a b"}`, `host: expected`},
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

// F1: what can be listened on: addresses of both kinds, names.
func TestConfigHosts(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "0.0.0.0", "::1", "fe80::1%eth0", "localhost", "my-machine.example.org", "a1"} {
		if _, _, err := parseConfig([]byte(`{"host":"` + host + `"}`)); err != nil {
			t.Error(err)
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

// F1: of two equal objects the last counts alone, and what is told of its fields
// is told of both.
func TestRepeatedObjectCountsAlone(t *testing.T) {
	cfg, warnings, err := parseConfig([]byte(`{"xfer":{"access":"off"},"xfer":{"dufs":"a","dufs":"b"}}`))
	if err != nil || cfg.Xfer != (Xfer{Access: "read-write", Server: "builtin", Dufs: "b"}) {
		t.Errorf("%+v, %v", cfg.Xfer, err)
	}
	if got := strings.Join(warnings, "\n"); !strings.Contains(got, "xfer stands twice") || !strings.Contains(got, "xfer.dufs stands twice") {
		t.Errorf("warnings: %s", got)
	}
}

// F2, C01: no half of a file is a configuration, wherever the writing stopped.
func TestHalfAFileIsNoConfiguration(t *testing.T) {
	const text = `{"$schema": "./s.json", "token": "` + testToken + `", "origins": ["http://a"], "xfer": {"access": "off"}}`
	for n := range len(text) {
		if _, _, err := parseConfig([]byte(text[:n])); err == nil {
			t.Errorf("%q was taken over", text[:n])
		}
	}
	if _, _, err := parseConfig([]byte(text)); err != nil {
		t.Error(err)
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
	t.Parallel()
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

// F1, F2: several starts at once with a file that has no token: each adds one, and
// the first look at the file, which every start takes, makes them agree.
func TestStartsAtOnceWithoutAToken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a2mcp.json")
	if err := os.WriteFile(path, []byte(`{"port": 0}`), 0o600); err != nil {
		t.Fatal(err)
	}
	bridges := make([]*sidecar, 8)
	var starts sync.WaitGroup
	for i := range bridges {
		s := &sidecar{secrets: &audit.Secrets{}, log: slog.New(slog.DiscardHandler)}
		s.paths.config = path
		bridges[i] = s
		starts.Go(func() {
			cfg, _, err := loadConfig(path)
			if err != nil {
				t.Error(err)
			}
			s.adopt(cfg)
		})
	}
	starts.Wait()
	for _, s := range bridges {
		s.takeOver()
		if token := s.config().Token; len(token) != 43 || token != bridges[0].config().Token {
			t.Error("two bridges have different tokens")
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

// F1: a link that leads nowhere yet, into another folder: the file is made where
// it leads, and the link stays.
func TestConfigIsMadeBehindALink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "dotfiles", "a2mcp.json"), filepath.Join(dir, "agent", "a2mcp.json")
	if err := os.Mkdir(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../dotfiles/a2mcp.json", link); err != nil {
		t.Skip("no symbolic links here: ", err)
	}
	cfg, _, err := loadConfig(link)
	if err != nil || len(cfg.Token) != 43 {
		t.Fatalf("token of %d characters, %v", len(cfg.Token), err)
	}
	if info, err := os.Lstat(file); err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
}

// F3, C03: a file that is no object, as one that is just being written, takes no
// token and is left as it is.
func TestWriteTokenIntoAHalfWrittenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a2mcp.json")
	for _, text := range []string{"", " ", "[]", `{"token": "012`, "\ufeff{}"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := writeToken(path, "new"); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: got %v, want an error that names the file", text, err)
		}
		if after, _ := os.ReadFile(path); string(after) != text {
			t.Errorf("%q became %q", text, after)
		}
	}
}

// F3, C03: a reload beside a rotation never brings the old token back.
func TestRotationBesideReloads(t *testing.T) {
	t.Parallel()
	s := &sidecar{secrets: &audit.Secrets{}, log: slog.New(slog.DiscardHandler)}
	s.paths.config = filepath.Join(t.TempDir(), "a2mcp.json")
	cfg, _, err := loadConfig(s.paths.config)
	if err != nil {
		t.Fatal(err)
	}
	s.adopt(cfg)
	done := make(chan struct{})
	var reloads sync.WaitGroup
	for range 4 {
		reloads.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					s.takeOver()
				}
			}
		})
	}
	for range 25 {
		token := newToken()
		if err := s.replaceToken(token); err != nil {
			t.Fatal(err)
		}
		for range 50 {
			if s.config().Token != token {
				t.Fatal("an older token is in force again")
			}
			runtime.Gosched()
		}
	}
	close(done)
	reloads.Wait()
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
