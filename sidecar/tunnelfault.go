package sidecar

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// tunnelFault is a failure as a person needs it, with cloudflared's own words
// behind it (T3).
type tunnelFault struct{ words, raw string }

func (f *tunnelFault) Error() string {
	if f.raw == "" {
		return f.words
	}
	return f.words + " (cloudflared: " + cut(f.raw) + ")"
}

// errNoConnection is a tunnel that has a name and no connection.
var errNoConnection = &tunnelFault{words: "blocked: a name was given, but no connection to Cloudflare came about, over HTTP/2 neither; " +
	"a firewall may close port 7844 to the outside"}

// known are the failures that cloudflared describes in its own way.
var known = []struct {
	signs []string
	words string
}{
	{[]string{"error code: 1015", "429 Too Many Requests"},
		"rate limited (429/1015): Cloudflare gives this network no more quick tunnels for now; wait some minutes and try again"},
	{[]string{"dial tcp: lookup", "no such host", "network is unreachable", "no route to host"},
		"no network: Cloudflare's service was not found; look at the connection and at the name servers of this machine"},
	{[]string{"dial tcp", "i/o timeout", "Client.Timeout", "context deadline exceeded", "TLS handshake", "x509:", "connection reset"},
		"blocked: Cloudflare's service is not reached; a firewall or a proxy may be in the way"},
}

// fault puts the end of cloudflared into words.
func (o *output) fault(exit error) error {
	said := o.complained()
	for _, k := range known {
		for _, line := range said {
			for _, sign := range k.signs {
				if strings.Contains(line, sign) {
					return &tunnelFault{words: k.words, raw: line}
				}
			}
		}
	}
	f := &tunnelFault{words: "cloudflared ended before it was connected: " + ending(exit)}
	if len(said) > 0 {
		f.raw = said[len(said)-1]
	}
	return f
}

// silence is a cloudflared that has named no address in time.
func (o *output) silence(limit time.Duration) error {
	f := &tunnelFault{words: fmt.Sprintf("no address within %v: Cloudflare's service does not answer; look at the connection of this machine", limit)}
	if said := o.complained(); len(said) > 0 {
		f.raw = said[len(said)-1]
	}
	return f
}

// diedFault is a cloudflared that ended while its tunnel was open.
func diedFault(exit error) error {
	return &tunnelFault{words: "cloudflared ended by itself: " + ending(exit)}
}

func ending(exit error) string {
	if exit == nil {
		return "exit status 0"
	}
	return exit.Error()
}

// evidence is what the audit log has of a failure: cloudflared's own words,
// short enough to be kept as they are (L3).
func evidence(err error) string {
	var f *tunnelFault
	if errors.As(err, &f) && f.raw != "" {
		return cut(f.raw)
	}
	return cut(err.Error())
}

// cut shortens a text to 120 characters.
func cut(text string) string {
	const most = 120
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
