package sidecar

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/a2mcp/a2mcp/audit"
	"github.com/a2mcp/a2mcp/files/obtain"
	"github.com/a2mcp/a2mcp/hostrpc"
	"github.com/a2mcp/a2mcp/httpfront"
	"github.com/a2mcp/a2mcp/proto"
)

// paths are the bridge's own files. They never show through a share (X5).
type paths struct {
	agentDir string
	config   string
	audit    string
	runFile  string // F5
	data     string // the bridge's own installs (X9)
}

func (s *sidecar) pathsFor(hello proto.Hello) paths {
	p := paths{
		agentDir: hello.AgentDir,
		config:   filepath.Join(hello.AgentDir, "a2mcp.json"),
		audit:    filepath.Join(hello.AgentDir, "a2mcp.log"),
		runFile:  filepath.Join(hello.AgentDir, "a2mcp.run", strconv.Itoa(hello.Host.PID)+".json"),
		data:     obtain.DefaultDataDir(hello.Home),
	}
	if env := s.opt.Getenv("A2MCP_CONFIG"); env != "" {
		p.config = env
	}
	if env := s.opt.Getenv("A2MCP_AUDIT"); env != "" {
		p.audit = env
	}
	return p
}

// greet answers hello. The first one opens configuration and log; a later one
// replaces what the host said of itself.
func (s *sidecar) greet(req *hostrpc.Request) {
	var hello proto.Hello
	switch err := req.Decode(&hello); {
	case err != nil:
		_ = req.Fail(proto.CodeInvalidParams, "hello: "+err.Error())
		return
	case hello.Protocol != proto.HostProtocol:
		s.skew(req, hello)
		return
	case hello.AgentDir == "" || !filepath.IsAbs(hello.AgentDir):
		_ = req.Fail(proto.CodeInvalidParams, "hello: agentDir has to be an absolute path")
		return
	}
	first := s.hello.Swap(&hello) == nil
	if first {
		s.open(hello)
	} else if hello.AgentDir != s.paths.agentDir {
		s.log.Warn("agent folder changed", "now", hello.AgentDir, "in use", s.paths.agentDir, "hint", "start a new sidecar to move")
	}
	s.log.Debug("hello", "host", hello.Host.Name, "version", hello.Host.Version, "mode", hello.Host.Mode, "pid", hello.Host.PID)
	_ = req.Reply(proto.Encode(proto.HelloResult{
		Protocol: proto.HostProtocol, Version: s.opt.Version, Commands: commands(), HostLLM: s.config().HostLLM,
	}))
}

// skew answers a host of another protocol and falls silent: the operator is told
// once, by the host, what to do.
func (s *sidecar) skew(req *hostrpc.Request, hello proto.Hello) {
	s.hello.Store(&hello)
	s.mute.Store(true)
	text := fmt.Sprintf("the host speaks protocol %d, a2mcp %s speaks %d; run `a2mcp install` and restart the host",
		hello.Protocol, s.opt.Version, proto.HostProtocol)
	s.log.Error("protocol mismatch", "detail", text)
	_ = req.Fail(proto.CodeProtocolSkew, text)
}

// open reads the configuration, opens the log and makes the front.
func (s *sidecar) open(hello proto.Hello) {
	s.paths = s.pathsFor(hello)
	memory := memoryOf(hello)
	s.retired.Store(&memory.Retired)
	cfg, err := s.readConfig()
	if err != nil {
		s.configErr = err
		cfg = defaultConfig() // until the file is mended nothing is bound (F1)
	}
	s.adopt(cfg)
	s.openAudit(cfg)
	s.share = s.newShare(hello)
	s.tunnel = s.newTunnel()
	s.front = httpfront.New(httpfront.Options{
		Host: s.host, Own: s.ownTools(), Files: s.share, Audit: s.audit, Log: s.log, Version: s.opt.Version, SessionTTL: s.opt.SessionTTL,
		Token:         func() string { return string(s.config().Token) },
		AllowOrigin:   s.allowOrigin,
		MaxBody:       func() int64 { return s.config().MaxBody },
		AuditRequired: func() bool { return s.config().Audit == "required" },
		SetInference:  s.setInference,
		Refused:       s.refused,
		Redact:        s.secrets.RedactString,
		Remember:      s.remember,
	})
	s.lastPort = memory.Port
	s.front.Restore(memory.Sessions)
	close(s.ready)
}

// allowOrigin allows what the configuration names, and the tunnel while it is
// open (H8).
func (s *sidecar) allowOrigin(origin string) bool {
	return slices.Contains(s.config().Origins, origin) || origin == s.tunnel.public()
}

// readConfig loads the file and logs what is odd about it.
func (s *sidecar) readConfig() (Config, error) {
	cfg, warnings, err := loadConfig(s.paths.config)
	s.noteOdd(warnings)
	if err == nil {
		err = s.refuseRetired(cfg)
	}
	return cfg, err
}

// noteOdd logs what is odd about the configuration, if that is news, and keeps it
// for the operator. The caller holds editing, or is the first hello.
func (s *sidecar) noteOdd(warnings []string) {
	if slices.Equal(warnings, s.odd) {
		return
	}
	s.odd, s.oddTold = warnings, false
	for _, w := range warnings {
		s.log.Warn("configuration", "file", s.paths.config, "detail", w)
	}
}

// tellOdd shows the operator what noteOdd kept, once.
func (s *sidecar) tellOdd() {
	if !s.oddTold && len(s.odd) > 0 {
		_ = s.host.Notify(proto.LevelWarning, "a2mcp: "+escape(s.paths.config+": "+strings.Join(s.odd, "; ")))
	}
	s.oddTold = true
}

// adopt puts a configuration into force.
func (s *sidecar) adopt(cfg Config) {
	if cfg.Token != "" {
		s.secrets.Add(string(cfg.Token))
	}
	s.cfg.Store(&cfg)
	if s.audit != nil {
		s.audit.Configure(s.auditOptions(cfg))
	}
}

func (s *sidecar) config() *Config { return s.cfg.Load() }

func (s *sidecar) auditOptions(cfg Config) audit.Options {
	return audit.Options{
		MaxBytes: int64(cfg.AuditMaxKB) << 10, Keep: cfg.AuditKeep, Required: cfg.Audit == "required",
		Secrets: s.secrets, Log: s.log,
	}
}

// openAudit opens the log. A path that cannot be used costs the records, said by
// the log itself; under "required" it costs the start (L5).
func (s *sidecar) openAudit(cfg Config) {
	opt := s.auditOptions(cfg)
	log, err := audit.Open(s.paths.audit, opt)
	if err != nil {
		if s.configErr == nil {
			s.configErr = fmt.Errorf("audit log: %w", err)
		}
		opt.Required = false
		log, _ = audit.Open(s.paths.audit, opt)
	}
	s.audit = log
}

// memoryOf is what a predecessor left with the host (S5).
func memoryOf(hello proto.Hello) (memory proto.Memory) {
	if len(hello.Memory) == 0 || json.Unmarshal(hello.Memory, &memory) != nil {
		return proto.Memory{}
	}
	return memory
}
