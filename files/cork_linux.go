package files

import (
	"net"

	"golang.org/x/sys/unix"
)

// setCork is TCP_CORK (tcp(7)). A connection that does not take it is merely slower.
func setCork(conn *net.TCPConn, on bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	value := 0
	if on {
		value = 1
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK, value) })
}
