//go:build unix

package audit

import "os"

// openToRead opens a file that may be renamed and replaced while it is open.
func openToRead(path string) (*os.File, error) { return os.Open(path) }
