package main

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
)

// agentFolder says which agent folder of omp is meant.
type agentFolder struct {
	AgentDir string `help:"Agent folder of the host. Default: what omp would use." placeholder:"DIR"`
	Profile  string `help:"Profile of omp whose agent folder is meant." placeholder:"NAME"`
}

// path is the folder, found as omp finds it: a profile, of the flag or of
// OMP_PROFILE or PI_PROFILE, has its own; else PI_CODING_AGENT_DIR names it; else it
// is .omp/agent in the home folder, with PI_CONFIG_DIR for .omp.
func (f agentFolder) path() (string, error) {
	if f.AgentDir != "" {
		return filepath.Abs(f.AgentDir)
	}
	profile := f.Profile
	if profile == "" {
		var set bool
		if profile, set = os.LookupEnv("OMP_PROFILE"); !set {
			profile = os.Getenv("PI_PROFILE")
		}
	}
	if profile = strings.TrimSpace(profile); profile == "default" {
		profile = ""
	}
	if strings.ContainsAny(profile, `/\:`) || strings.HasPrefix(profile, ".") {
		return "", failed(exitUsage, "%q is no profile of omp; give the name alone, or the folder with --agent-dir", profile)
	}
	if dir := os.Getenv("PI_CODING_AGENT_DIR"); dir != "" && profile == "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", failed(exitUsage, "no home folder: give --agent-dir")
	}
	root := filepath.Join(home, cmp.Or(os.Getenv("PI_CONFIG_DIR"), ".omp"))
	if profile != "" {
		return filepath.Join(root, "profiles", profile, "agent"), nil
	}
	return filepath.Join(root, "agent"), nil
}

// demoFolder is the agent folder of a demo that was given none.
func demoFolder() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "a2mcp", "demo"), err
}
