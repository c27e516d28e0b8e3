package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Tool is one of the bridge's own tools as the catalogue lists it.
type Tool struct {
	Name        string
	Description string
	InputSchema json.RawMessage
	// Run does the call for the session sid with the caller's raw arguments. isError marks text as the
	// reason of a failure (X4).
	Run func(ctx context.Context, sid string, args []byte) (text string, isError bool)
}

const shareDescription = `Share one file or folder of this machine under the bridge's /xfer/ route, to download from and upload to with ` +
	`the bridge's own bearer token. One share at a time: a new one replaces the old. Nothing shared can be overwritten or deleted. ` +
	`Downloads take Range; folders list as HTML, ?json, ?simple, ?q=name, ?zip; a file's SHA-256 is ?hash. ` +
	`One request may carry as much as the bridge's body limit (128 MiB unless configured), through a tunnel at most 100 MB: ` +
	`send larger files in pieces, PUT the first, then PATCH each next one with the header "X-Update-Range: append"; ` +
	`after a break, HEAD tells the length to go on from.`

var (
	shareSchema = json.RawMessage(`{"type":"object","properties":{` +
		`"path":{"type":"string","description":"file or folder to share; ~ is the host's home, relative paths start at the host's working directory"},` +
		`"ttlSeconds":{"type":"integer","minimum":1,"maximum":86400,"default":3600,"description":"seconds until the share ends by itself"},` +
		`"readOnly":{"type":"boolean","default":false,"description":"refuse every upload"},` +
		`"browser":{"type":"boolean","default":false,"description":"also return browserUrl, a secret link that opens this share in a browser without the token"}` +
		`},"required":["path"],"additionalProperties":false}`)
	emptySchema = json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
)

// Tools are xfer_share, xfer_status and xfer_stop.
func (s *Share) Tools() []Tool {
	return []Tool{
		{"xfer_share", shareDescription, shareSchema, s.runShare},
		{"xfer_status", "Say what is shared under /xfer/, at which addresses and until when.", emptySchema, s.runStatus},
		{"xfer_stop", "End the share, if there is one. Transfers under way are cut.", emptySchema, s.runStop},
	}
}

// request is what xfer_share was asked for.
type request struct {
	path     string
	ttl      time.Duration
	readOnly bool
	browser  bool
}

const (
	defaultTTL = 3600
	maxTTL     = 86400
)

var errNoPath = errors.New("xfer_share needs a 'path' — the file or directory to serve")

// parseRequest reads the arguments. Names it does not know are refused: a misspelt readOnly must not
// open a writable share.
func parseRequest(args []byte) (request, error) {
	var m map[string]json.RawMessage
	if len(bytes.TrimSpace(args)) > 0 {
		if err := json.Unmarshal(args, &m); err != nil {
			return request{}, errNoPath
		}
	}
	r := request{ttl: defaultTTL * time.Second}
	if json.Unmarshal(m["path"], &r.path) != nil || r.path == "" {
		return r, errNoPath
	}
	for name, raw := range m {
		var err error
		switch name {
		case "path":
		case "ttlSeconds":
			r.ttl, err = parseTTL(raw)
		case "readOnly":
			err = parseBool(name, raw, &r.readOnly)
		case "browser":
			err = parseBool(name, raw, &r.browser)
		default:
			err = fmt.Errorf("xfer_share does not take %q — it takes path, ttlSeconds, readOnly and browser", name)
		}
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

func parseTTL(raw json.RawMessage) (time.Duration, error) {
	seconds := float64(defaultTTL)
	if err := json.Unmarshal(raw, &seconds); err != nil || seconds < 1 || seconds > maxTTL {
		return 0, fmt.Errorf("xfer_share 'ttlSeconds' is a number of seconds from 1 to %d", maxTTL)
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond), nil
}

func parseBool(name string, raw json.RawMessage, b *bool) error {
	if err := json.Unmarshal(raw, b); err != nil {
		return fmt.Errorf("xfer_share '%s' is true or false", name)
	}
	return nil
}

// runStatus is X3.
func (s *Share) runStatus(context.Context, string, []byte) (string, bool) {
	st := s.Status()
	if !st.Serving {
		return `{"serving":false}`, false
	}
	return string(plainJSON(struct {
		Serving   bool    `json:"serving"`
		Path      string  `json:"path"`
		Port      int     `json:"port"`
		URL       string  `json:"url"`
		PublicURL *string `json:"publicUrl"`
		Route     string  `json:"route"`
		StartedAt string  `json:"startedAt"`
		ExpiresAt string  `json:"expiresAt"`
	}{true, st.Path, st.Port, st.URL, orNull(st.PublicURL), Route, stamp(st.StartedAt), stamp(st.ExpiresAt)})), false
}

// runStop is the other half of X3; it writes the one stop record (X8).
func (s *Share) runStop(_ context.Context, sid string, _ []byte) (string, bool) {
	s.acting.Lock()
	defer s.acting.Unlock()
	l := s.live()
	if !s.take(l) {
		return `{"stopped":false,"note":"nothing was shared"}`, false
	}
	defer s.ending.Done()
	_ = s.record(stopped(l), sid)
	l.close()
	return string(plainJSON(struct {
		Stopped bool   `json:"stopped"`
		Path    string `json:"path"`
	}{true, l.path})), false
}

// orNull is nil for "", so that JSON says null.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// stamp is a time as results show it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// expand makes a caller's path absolute (X1).
func (o Options) expand(path string) string {
	if path == "~" {
		return o.Home
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return joinPath(o.Home, rest)
	}
	return joinPath(o.Cwd, path)
}
