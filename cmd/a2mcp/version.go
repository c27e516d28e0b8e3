package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
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
	fmt.Fprintf(stdout, "a2mcp %s %s/%s %s\n", version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, module := range info.Deps {
		fmt.Fprintf(stdout, "%s %s\n", module.Path, module.Version)
	}
	return nil
}

// versionFlag is a2mcp --version.
type versionFlag bool

// BeforeReset prints before anything else is looked at, and ends the program.
func (versionFlag) BeforeReset(app *kong.Kong) error {
	err := versionCmd{}.Run()
	app.Exit(0)
	return err
}
