//go:build !linux

package files

import "net"

func setCork(*net.TCPConn, bool) {}
