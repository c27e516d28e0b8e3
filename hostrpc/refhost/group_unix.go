//go:build unix

package refhost

import (
	"os/exec"
	"syscall"
)

func shell() (path, flag string) { return "sh", "-c" }

// groupOf makes a cancelled command end with everything it has started.
func groupOf(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// detach keeps the terminal's Ctrl-C from the sidecar: its end is the end of its
// input.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
