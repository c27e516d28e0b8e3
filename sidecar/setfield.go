package sidecar

import (
	"errors"
	"io/fs"
	"os"

	"github.com/a2mcp/a2mcp/proto"
)

// SetPort puts a port into a configuration that has another one, making the file first
// if there is none. 0 needs no file and no member. A file that is no JSON object is left
// for the sidecar to complain of.
func SetPort(path string, port int) error {
	data, err := os.ReadFile(path)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing && port != 0 {
		if err := createConfig(path); err != nil {
			return err
		}
		data, err = os.ReadFile(path)
	}
	switch {
	case missing && port == 0:
		return nil
	case err != nil:
		return err
	case !isObject(data):
		return nil
	}
	wanted, now := proto.Encode(port), proto.Member(data, "port")
	if string(now) == string(wanted) || now == nil && port == 0 {
		return nil
	}
	return setMember(path, "port", wanted)
}
