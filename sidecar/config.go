package sidecar

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/a2mcp/a2mcp/proto"
)

// Secret is a string that shows itself to nobody: printed, logged or encoded it
// is the word "redacted". string(s) is the one way to read it.
type Secret string

// String hides the secret from fmt.
func (Secret) String() string { return "redacted" }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return "redacted" }

// LogValue hides the secret from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue("redacted") }

// Config is a2mcp.json (F1). A Config in use is never changed; an edit of the
// file replaces it whole.
type Config struct {
	Port       int    // 0: any free one
	Host       string // address to listen on
	Token      Secret // empty only between reading a file without one and writing it back
	HostLLM    string // allow or deny
	Audit      string // best-effort or required
	AuditMaxKB int    // size of the log at which it is rotated, in KiB
	AuditKeep  int    // rotated logs to keep
	MaxBody    int64  // bytes
	Origins    []string
	Xfer       Xfer
}

// Xfer configures sharing of files (X6, X7, X9).
type Xfer struct {
	Access      string // read-write, read-only or off
	Server      string // builtin or dufs
	Dufs        string // name or path of the dufs binary
	Cloudflared string // name or path of the cloudflared binary
}

// minToken is the least length of a token, in characters (A3).
const minToken = 32

func defaultConfig() Config {
	return Config{
		Host: "127.0.0.1", HostLLM: "allow", Audit: "best-effort",
		AuditMaxKB: 512, AuditKeep: 1, MaxBody: 128 << 20,
		Xfer: Xfer{Access: "read-write", Server: "builtin"},
	}
}

// parseConfig decodes a configuration strictly: every wrong field is in the
// error, with what was expected and what to do. Unknown fields are warnings.
func parseConfig(data []byte) (cfg Config, warnings []string, err error) {
	cfg = defaultConfig()
	if !proto.Valid(data) {
		return cfg, nil, syntaxProblem(data)
	}
	if !proto.IsObject(trimSpace(data)) {
		return cfg, nil, errors.New("the file is not a JSON object; write {…} with the fields in it")
	}
	p := fieldParser{seen: map[string]bool{}}
	for key, value := range proto.Members(data) {
		p.field(&cfg, string(key), value)
	}
	return cfg, p.warnings, joined(p.problems)
}

// configProblems are all that is wrong with a file; as an error they are one line.
type configProblems []error

func (ps configProblems) Error() string {
	var texts []string
	for _, p := range ps {
		texts = append(texts, p.Error())
	}
	return strings.Join(texts, "; ")
}

func joined(problems []error) error {
	if problems == nil {
		return nil
	}
	return configProblems(problems)
}

type fieldParser struct {
	prefix   string
	seen     map[string]bool
	problems []error
	warnings []string
}

// note sees to it that a repeated key is told. The last of them counts.
func (p *fieldParser) note(key string) {
	if p.seen[key] {
		p.warnings = append(p.warnings, fmt.Sprintf("%s%s stands twice; the last one counts", p.prefix, key))
	}
	p.seen[key] = true
}

// field decodes one member.
func (p *fieldParser) field(cfg *Config, key string, value []byte) {
	p.note(key)
	switch key {
	case "port":
		cfg.Port = p.number(key, value, 0, 65535)
	case "host":
		cfg.Host = p.text(key, value, `an address such as "127.0.0.1", without a port`, isHost)
	case "token":
		cfg.Token = p.token(value)
	case "host_llm":
		cfg.HostLLM = p.choice(key, value, "allow", "deny")
	case "audit":
		cfg.Audit = p.choice(key, value, "best-effort", "required")
	case "auditMaxKB":
		cfg.AuditMaxKB = p.number(key, value, 1, 1<<22)
	case "auditKeep":
		cfg.AuditKeep = p.number(key, value, 1, 1000)
	case "maxBody":
		cfg.MaxBody = int64(p.number(key, value, 1, proto.MaxLine-1<<20))
	case "origins":
		cfg.Origins = p.origins(value)
	case "xfer":
		p.xfer(&cfg.Xfer, value)
	case "$schema": // for editors; see schema.go
		p.text(key, value, "the address of a JSON schema", func(string) bool { return true })
	default:
		p.warnings = append(p.warnings, p.prefix+key+" is not a field; it is ignored")
	}
}

func (p *fieldParser) xfer(x *Xfer, value []byte) {
	if !proto.IsObject(value) {
		p.problem("xfer", "an object such as {}", value)
		return
	}
	*x = defaultConfig().Xfer // a repeated object counts alone
	in := fieldParser{prefix: "xfer.", seen: map[string]bool{}}
	for key, value := range proto.Members(value) {
		in.note(string(key))
		switch string(key) {
		case "access":
			x.Access = in.choice("access", value, "read-write", "read-only", "off")
		case "server":
			x.Server = in.choice("server", value, "builtin", "dufs")
		case "dufs":
			x.Dufs = in.text("dufs", value, "the name or path of a binary", func(s string) bool { return s != "" })
		case "cloudflared":
			x.Cloudflared = in.text("cloudflared", value, "the name or path of a binary", func(s string) bool { return s != "" })
		default:
			in.warnings = append(in.warnings, "xfer."+string(key)+" is not a field; it is ignored")
		}
	}
	p.problems = append(p.problems, in.problems...)
	p.warnings = append(p.warnings, in.warnings...)
}

// hostName is a name as RFC 1123, section 2.1 has it; the last part of one is no number.
var hostName = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)*[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?$`)

func isHost(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil || hostName.MatchString(s)
}

// problem notes what was expected of a field and what stands there instead.
func (p *fieldParser) problem(key, expected string, value []byte) {
	got := string(value)
	if runes := []rune(got); len(runes) > 40 {
		got = string(runes[:40]) + "…"
	}
	p.problems = append(p.problems, fmt.Errorf("%s%s: expected %s, got %s; correct or remove it", p.prefix, key, expected, got))
}

func (p *fieldParser) number(key string, value []byte, least, most int) int {
	n, err := strconv.Atoi(string(value))
	if err != nil || n < least || n > most {
		p.problem(key, fmt.Sprintf("a whole number from %d to %d", least, most), value)
	}
	return n
}

func (p *fieldParser) text(key string, value []byte, expected string, ok func(string) bool) string {
	s, isText := proto.Text(value)
	if !isText || !ok(s) {
		p.problem(key, expected, value)
	}
	return s
}

func (p *fieldParser) choice(key string, value []byte, words ...string) string {
	expected := `"` + strings.Join(words, `" or "`) + `"`
	return p.text(key, value, expected, func(s string) bool { return slices.Contains(words, s) })
}

// notInToken reports a character that no header carries as it is, or that JSON
// writes in another way, so that the token could not be found and replaced (A3, A5).
func notInToken(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }

// token never shows what it found (A3).
func (p *fieldParser) token(value []byte) Secret {
	s, isText := proto.Text(value)
	if !isText || len(s) < minToken || strings.ContainsFunc(s, notInToken) {
		p.problems = append(p.problems, fmt.Errorf(
			"token: expected a string of at least %d characters, ASCII without white space, quotes and backslashes; write another one, or remove the field: the next start makes a token", minToken))
	}
	return Secret(s)
}

// originPattern is an origin as a browser writes it (RFC 6454, section 6.2), but
// for capitals in the host.
var originPattern = regexp.MustCompile(`^[a-z][a-z0-9+.-]*://([A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$`)

func (p *fieldParser) origins(value []byte) []string {
	const expected = `a list of origins such as ["https://example.org:8443"]`
	if !proto.IsArray(value) {
		p.problem("origins", expected, value)
		return nil
	}
	var list []string
	for entry := range proto.Elements(value) {
		origin, _ := proto.Text(entry)
		if !originPattern.MatchString(origin) {
			p.problem("origins", expected, entry)
			continue
		}
		list = append(list, strings.ToLower(origin))
	}
	return list
}

// syntaxProblem says where a file stops being JSON.
func syntaxProblem(data []byte) error {
	var v any
	var syntax *json.SyntaxError
	switch err := json.Unmarshal(data, &v); {
	case strings.HasPrefix(string(data), "\ufeff"):
		return errors.New("the file starts with a byte order mark; save it as UTF-8 without one")
	case errors.As(err, &syntax):
		line := 1 + strings.Count(string(data[:min(int(syntax.Offset), len(data))]), "\n")
		return fmt.Errorf("line %d is not JSON (%w); mend the line, or move the file away and a new one is made", line, err)
	}
	return errors.New("the file is not UTF-8 text; save it as UTF-8")
}

func trimSpace(data []byte) []byte { return []byte(strings.TrimSpace(string(data))) }
