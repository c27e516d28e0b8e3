package files

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCork: a large download corks its connection and lets go of it (X5); nothing else does.
func TestCork(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	corked := func() (on int) {
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		_ = raw.Control(func(fd uintptr) { on, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_CORK) })
		if err != nil {
			t.Fatal(err)
		}
		return on
	}
	ctx := ConnContext(t.Context(), conn)
	release := cork(ctx, corkFrom)
	if corked() == 0 {
		t.Error("a large download does not cork")
	}
	release()
	if corked() != 0 {
		t.Error("the connection stays corked")
	}
	cork(ctx, corkFrom-1)()
	cork(t.Context(), 1<<30)() // a server without ConnContext
}
