package sidecar

import (
	"os"
	"path/filepath"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// runFile is how a program on this machine finds a bridge that listens on a
// random port (F5). It holds no secret.
type runFile struct {
	URL       string    `json:"url"`
	PID       int       `json:"pid"`
	HostPID   int       `json:"hostPid"`
	Cwd       string    `json:"cwd"`
	StartedAt time.Time `json:"startedAt"`
}

func (s *sidecar) writeRunFile(sv *server) {
	hello := s.hello.Load()
	data := proto.Encode(runFile{
		URL: sv.url, PID: os.Getpid(), HostPID: hello.Host.PID, Cwd: hello.Cwd, StartedAt: time.Now().UTC().Truncate(time.Millisecond),
	})
	err := os.MkdirAll(filepath.Dir(s.paths.runFile), 0o700)
	var temp string
	if err == nil {
		temp, err = writeBeside(s.paths.runFile, append(data, '\n'))
	}
	if err == nil {
		err = os.Rename(temp, s.paths.runFile)
	}
	if err != nil {
		s.log.Warn("run file not written", "err", err)
	}
}

func (s *sidecar) removeRunFile() {
	_ = os.Remove(s.paths.runFile)               // it names a port that is gone
	_ = os.Remove(filepath.Dir(s.paths.runFile)) // only if no other bridge has one there
}
