package sidecar

import (
	"context"
	"fmt"
	"time"

	"github.com/a2mcp/a2mcp/audit"
	"github.com/a2mcp/a2mcp/files"
	"github.com/a2mcp/a2mcp/files/dufs"
	"github.com/a2mcp/a2mcp/files/obtain"
	"github.com/a2mcp/a2mcp/proto"
)

// find finds a binary, or installs it (X9). sid is the session that asked, "" for
// the operator.
func (s *sidecar) find(ctx context.Context, tool obtain.Tool, configured, sid string) (obtain.Found, error) {
	finder := &obtain.Finder{
		AgentDir: s.paths.agentDir, DataDir: s.paths.data, Log: s.log,
		Audit: func(install obtain.Install) error { return s.recordInstall(install, sid) },
	}
	return finder.Find(ctx, tool, configured)
}

// recordInstall writes an install, good or bad (L7). Only under "required" does
// the install depend on it (L5).
func (s *sidecar) recordInstall(install obtain.Install, sid string) error {
	args := struct {
		Action  string `json:"action"`
		Tool    string `json:"tool"`
		Version string `json:"version"`
		Asset   string `json:"asset"`
		SHA256  string `json:"sha256"` // pinned
		Path    string `json:"path"`
		Error   string `json:"error,omitempty"`
	}{"install", install.Tool, install.Version, install.Asset, install.SHA256, install.Path, ""}
	if install.Err != nil {
		args.Error = install.Err.Error()
	}
	err := s.audit.Write(audit.Record{
		Time: time.Now(), ID: audit.NewID(), SID: sid, Phase: audit.Done, Tool: "xfer", IsError: install.Err != nil, Args: proto.Encode(args),
	})
	if err != nil && s.config().Audit == "required" {
		return fmt.Errorf("audit log not writable: %w", err)
	}
	return nil
}

// findCloudflared is the tunnel's binary.
func (s *sidecar) findCloudflared(ctx context.Context) (string, error) {
	found, err := s.find(ctx, obtain.Cloudflared, s.config().Xfer.Cloudflared, "")
	return found.Path, err
}

// startDufs is the child of X6, where the configuration wants one.
func (s *sidecar) startDufs(ctx context.Context, share files.ChildShare) (files.Child, error) {
	xfer := s.config().Xfer
	if xfer.Server != "dufs" && xfer.Dufs == "" {
		return nil, nil
	}
	found, err := s.find(ctx, obtain.Dufs, xfer.Dufs, share.SID)
	if err != nil {
		return nil, err
	}
	server, err := dufs.Start(ctx, dufs.Options{Binary: found.Path, Path: share.Path, ReadOnly: share.ReadOnly, Log: s.log})
	if err != nil {
		return nil, err
	}
	child := dufsChild{Server: server}
	if found.Installed {
		child.installed = found.Path
	}
	return child, nil
}

// dufsChild is a dufs as the share sees it.
type dufsChild struct {
	*dufs.Server
	installed string
}

// Installed is the path of a binary that was installed for this start.
func (c dufsChild) Installed() string { return c.installed }
