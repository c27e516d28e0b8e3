// Package fileclients holds tests only: programs that people move files with, against the file server
// of `a2mcp demo`. run.sh installs the programs and starts the tests; this is a module of its own, so
// that nothing else does.
package fileclients
