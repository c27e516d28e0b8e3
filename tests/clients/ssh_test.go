package clients

import (
	"crypto/ed25519"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"
)

// sshServer is a server on loopback that lets everybody in and does nothing but
// forward ports (RFC 4254, section 7.2).
type sshServer struct {
	port      int
	forwarded atomic.Int32
}

func startSSH(t *testing.T) *sshServer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(signer)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	s := &sshServer{port: listener.Addr().(*net.TCPAddr).Port}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() }) // which ends the client that stands in the background
			go s.serve(conn, config)
		}
	}()
	return s
}

func (s *sshServer) serve(conn net.Conn, config *ssh.ServerConfig) {
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offer := range channels {
		var target struct {
			Host       string
			Port       uint32
			Origin     string
			OriginPort uint32
		}
		if offer.ChannelType() != "direct-tcpip" || ssh.Unmarshal(offer.ExtraData(), &target) != nil {
			_ = offer.Reject(ssh.UnknownChannelType, "forwards only")
			continue
		}
		far, err := net.Dial("tcp", net.JoinHostPort(target.Host, strconv.Itoa(int(target.Port))))
		if err != nil {
			_ = offer.Reject(ssh.ConnectionFailed, err.Error())
			continue
		}
		channel, requests, err := offer.Accept()
		if err != nil {
			far.Close()
			continue
		}
		s.forwarded.Add(1)
		go ssh.DiscardRequests(requests)
		go func() { _, _ = io.Copy(channel, far); channel.Close() }()
		go func() { _, _ = io.Copy(far, channel); far.Close() }()
	}
}

// configure makes `ssh host` in an example lead to this server. ssh does not take
// the home folder from the environment, so it is called by another name.
func (s *sshServer) configure(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	real, err := exec.LookPath("ssh")
	if err != nil {
		t.Fatal("ssh is not here: install openssh-client")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	text := "Host host\n HostName 127.0.0.1\n Port " + strconv.Itoa(s.port) +
		"\n User nobody\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n ExitOnForwardFailure yes\n"
	script := "#!/bin/sh\nexec '" + real + "' -F '" + config + "' \"$@\"\n"
	for name, data := range map[string]string{"config": text, "ssh": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"))
}

func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}
