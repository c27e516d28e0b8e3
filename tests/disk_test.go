//go:build linux

package tests

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/a2mcp/a2mcp/proto"
)

// L5: a log on a full disk costs the records and nothing else: calls succeed,
// quickly, the operator is told of the first failure and of every hundredth, with
// path and cause, and the status counts.
func TestLogOnAFullDisk(t *testing.T) {
	full := func(cmd *exec.Cmd) { cmd.Env = []string{"A2MCP_AUDIT=/dev/full"} }
	b := startLiveIn(t, t.TempDir(), `{}`, echoArguments, full)
	sid := b.session(t)
	var took []time.Duration
	for range 125 { // 250 records
		began := time.Now()
		if err := b.echo(sid, "x"); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("median %v, longest %v", took[len(took)/2], took[len(took)-1])
	if took[len(took)/2] > 100*time.Millisecond {
		t.Errorf("the median call took %v", took[len(took)/2])
	}
	if status := b.command("status"); !strings.Contains(status, "audit_failures=250") {
		t.Errorf("status: %s", status)
	}
	var told []string
	for line := range strings.Lines(b.stderr.String()) {
		if strings.Contains(line, "audit write failed") {
			told = append(told, line)
		}
	}
	if len(told) != 3 || !strings.Contains(told[0], "path=/dev/full") || !strings.Contains(told[0], "no space left") || !strings.Contains(told[2], "lost=200") {
		t.Errorf("stderr: %q", told)
	}
	required := startLiveIn(t, t.TempDir(), `{"audit":"required"}`, echoArguments, full)
	if err := required.echo(required.session(t), "x"); err == nil || !strings.Contains(err.Error(), "audit log not writable") {
		t.Errorf("required: %v", err)
	}
}

// smallDisk mounts a disk of a megabyte, where that may be done.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("no disk can be mounted here: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill leaves no byte free; the returned function makes space again.
func fill(t *testing.T, dir string) (free func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 4096); ; {
		if _, err := f.Write(block); err != nil {
			return func() { os.Remove(f.Name()) }
		}
	}
}

// L5, L4, X5: a disk that is full for a while: calls go on; an upload is 507 and
// leaves nothing; then records are written again, every line of them whole.
func TestDiskFullForAWhile(t *testing.T) {
	dir := smallDisk(t)
	b := startLiveIn(t, dir, `{}`, echoArguments, func(*exec.Cmd) {})
	sid := b.session(t)
	shared := filepath.Join(dir, "shared")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	if resp, data, err := b.post(sid, strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"xfer_share","arguments":{"path":%q}}}`, shared))); err != nil || bytes.Contains(data, []byte(`"isError":true`)) {
		t.Fatalf("sharing: %v, %s, %v", resp, data, err)
	}
	if status := b.put(t, "too-big", 2<<20); status != http.StatusInsufficientStorage {
		t.Errorf("an upload that does not fit: %d", status)
	}
	free := fill(t, dir)
	for n := range 50 {
		if err := b.echo(sid, fmt.Sprintf("full %d", n)); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(b.stderr.String(), "no space left") {
		t.Errorf("the disk was not full: the test does not test\n%s", b.stderr)
	}
	if answer := b.command("rotate"); !strings.Contains(answer, "the old one still works") {
		t.Errorf("rotate on a full disk: %s", answer)
	}
	if status := b.put(t, "no-place", 64<<10); status != http.StatusInsufficientStorage {
		t.Errorf("an upload to a full disk: %d", status)
	}
	free()
	if left, err := os.ReadDir(shared); err != nil || len(left) > 0 {
		t.Errorf("left in the share: %v, %v", left, err)
	}
	if status := b.put(t, "fits", 64<<10); status != http.StatusCreated {
		t.Errorf("an upload once there is space: %d", status)
	}
	if err := b.echo(sid, "space again"); err != nil {
		t.Error(err)
	}
	torn, last := 0, ""
	data, err := os.ReadFile(filepath.Join(dir, "a2mcp.log"))
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if last = lines.Text(); !proto.Valid(lines.Bytes()) {
			torn++
		}
	}
	if torn > 1 || !strings.Contains(last, "space again") || !strings.Contains(last, `"done"`) {
		t.Errorf("%d torn lines, the last is %s", torn, last)
	}
}

// put uploads a file of zeros to the share.
func (b *liveBridge) put(t *testing.T, name string, size int) int {
	t.Helper()
	req, err := http.NewRequest(http.MethodPut, b.url+"xfer/"+name, bytes.NewReader(make([]byte, size)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	resp, err := b.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// L4, L5, C03: a log that was removed is made anew; in a folder where nothing can
// be made calls go on without it and a rotation of the token changes nothing; both
// work again when they can.
func TestLogRemovedAndFolderReadOnly(t *testing.T) {
	dir := t.TempDir()
	b := startLiveIn(t, dir, `{}`, echoArguments, func(cmd *exec.Cmd) { asNobody(t, cmd, dir) })
	sid := b.session(t)
	log := filepath.Join(dir, "a2mcp.log")
	call := func(text string) {
		t.Helper()
		if err := b.echo(sid, text); err != nil {
			t.Fatal(err)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	call("before")
	do(os.Remove(log))
	call("removed")
	if data, err := os.ReadFile(log); err != nil || !strings.Contains(string(data), "removed") || strings.Contains(string(data), "before") {
		t.Errorf("the log that was made anew: %s, %v", data, err)
	}
	do(os.Remove(log))
	do(os.Chmod(dir, 0o500))
	call("read-only")
	if status := b.command("status"); !strings.Contains(status, "audit_failures=2") || !strings.Contains(b.stderr.String(), "permission denied") {
		t.Errorf("status: %s\nstderr: %s", status, b.stderr)
	}
	if answer := b.command("rotate"); !strings.Contains(answer, "the old one still works") || !strings.Contains(answer, "permission denied") {
		t.Errorf("rotate in a read-only folder: %s", answer)
	}
	call("with the old token")
	do(os.Chmod(dir, 0o700))
	if answer := b.command("rotate"); !strings.Contains(answer, "new token") {
		t.Errorf("rotate once it can be done: %s", answer)
	}
	if err := b.echo(sid, "x"); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("the old token: %v", err)
	}
	b.token = b.command("token")
	sid = b.session(t)
	call("writable again")
	if data, err := os.ReadFile(log); err != nil || !strings.Contains(string(data), "writable again") {
		t.Errorf("the log: %s, %v", data, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "a2mcp.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// asNobody runs a command of root's as somebody whom permissions bind.
func asNobody(t *testing.T, cmd *exec.Cmd, dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	const nobody = 65534
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	for _, private := range []string{filepath.Dir(dir), buildDir} {
		if err := os.Chmod(private, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	for _, own := range []string{dir, filepath.Join(dir, "a2mcp.json")} {
		if err := os.Chown(own, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
}
