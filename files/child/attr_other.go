//go:build unix && !linux

package child

import "syscall"

// attributes of the process: a group of its own. These systems have no death with the parent.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
