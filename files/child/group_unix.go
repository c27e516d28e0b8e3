//go:build unix

package child

import (
	"os"
	"syscall"
)

// group is the process group that a child leads.
type group struct{ id int }

func newGroup(leader *os.Process) (group, error) { return group{leader.Pid}, nil }

// terminate asks all of the group to end.
func (g group) terminate() { _ = syscall.Kill(-g.id, syscall.SIGTERM) }

// kill ends all of the group.
func (g group) kill() { _ = syscall.Kill(-g.id, syscall.SIGKILL) }

// end kills what its leader has left behind.
func (g group) end() { g.kill() }
