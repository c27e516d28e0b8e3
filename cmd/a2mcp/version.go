package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// release is set by the linker for a release build.
var release string

// version is the release, or what the Go toolchain knows of the source.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// versionCmd prints versions.
type versionCmd struct{}

// Run is a2mcp version.
func (versionCmd) Run() error {
	fmt.Fprintf(os.Stdout, "a2mcp %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, module := range info.Deps {
		fmt.Fprintf(os.Stdout, "%s %s\n", module.Path, module.Version)
	}
	return nil
}
