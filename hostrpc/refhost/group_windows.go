package refhost

import (
	"os/exec"
	"syscall"
)

// shell is cmd here; a command written for sh needs sh on the PATH.
func shell() (path, flag string) {
	if sh, err := exec.LookPath("sh"); err == nil {
		return sh, "-c"
	}
	return "cmd", "/c"
}

// groupOf has nothing to do: only the command itself is ended here.
func groupOf(*exec.Cmd) {}

// detach keeps the console's Ctrl-C from the sidecar: its end is the end of its
// input.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
