package files

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/a2mcp/a2mcp/audit"
)

// action is the `args` of an xfer record (L7). It never holds the browser link.
type action struct {
	Action     string `json:"action"` // share, stop or close
	Path       string `json:"path"`
	Port       int    `json:"port"`
	TTLSeconds int64  `json:"ttlSeconds,omitempty"`
	Route      string `json:"route"`
	ReadOnly   bool   `json:"readOnly,omitempty"`
	Browser    bool   `json:"browser,omitempty"`
	Why        string `json:"why,omitempty"`

	of *live
}

func shared(l *live) action {
	return action{Action: "share", Path: l.path, Route: Route, TTLSeconds: int64(l.ttl / time.Second),
		ReadOnly: l.readOnly, Browser: l.secret != "", of: l}
}

func closed(l *live, why string) action {
	return action{Action: "close", Path: l.path, Route: Route, Why: why, of: l}
}

func stopped(l *live) action {
	return action{Action: "stop", Path: l.path, Route: Route, of: l}
}

// record writes one xfer record; sid is the session that asked, "" where none did. A failure is counted
// and told by the log itself; only the beginning of a share may depend on it (L5).
func (s *Share) record(a action, sid string) error {
	if s.write == nil {
		return nil
	}
	local, _ := s.o.Base()
	a.Port = a.of.port(local)
	return s.write(audit.Record{
		Time: time.Now(), ID: audit.NewID(), SID: sid, Phase: audit.Done, Tool: "xfer", Args: plainJSON(a),
	})
}

// plainJSON is v as JSON on one line with <, > and & as they are (H12).
func plainJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // only structs of strings, numbers and times come here
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
