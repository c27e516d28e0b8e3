package sidecar

import (
	"errors"

	"golang.org/x/sys/windows"
)

// addressInUse reports that somebody else listens there (P7).
func addressInUse(err error) bool { return errors.Is(err, windows.WSAEADDRINUSE) }

// ProcessAlive reports whether a process of that id is there.
func ProcessAlive(pid int) bool {
	handle, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return errors.Is(err, windows.ERROR_ACCESS_DENIED) // it is there, but not ours
	}
	defer windows.CloseHandle(handle)
	event, err := windows.WaitForSingleObject(handle, 0)
	return err == nil && event == uint32(windows.WAIT_TIMEOUT)
}

// exposure has nothing to say: what others may read is not in the mode here.
func exposure(string) []string { return nil }
