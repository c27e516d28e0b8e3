package sidecar

import (
	"testing"
)

// FuzzConfig: what is taken is within the bounds that the page of the
// configuration gives, and what is not says why (F1).
func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"port": 8080, "host": "::1", "token": "01234567890123456789012345678901"}`, `{"port": 1.5}`, `{"xfer": {"access": "off", "server": "dufs"}}`,
		`{"origins": ["http://a.example:1"]}`, `{"port": 1, "port": 2}`, `[]`, "\xef\xbb\xbf{}", `{"maxBody": 1e99, "auditKeep": -1}`, `{"host_llm": "Deny"`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, _, err := parseConfig(data)
		problems := problemsOf(err)
		if (err == nil) != (len(problems) == 0) {
			t.Errorf("taken: %v, but the check says %q", err == nil, problems)
		}
		if err != nil {
			return
		}
		if cfg.Port < 0 || cfg.Port > 65535 || cfg.Host == "" || cfg.MaxBody <= 0 || cfg.AuditMaxKB <= 0 || cfg.AuditKeep < 0 ||
			cfg.Token != "" && len([]rune(string(cfg.Token))) < minToken {
			t.Errorf("%q became %+v", data, cfg)
		}
		_ = withMember(data, "token", []byte(`"new"`))
	})
}
