package child

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// attributes of the process: a console group of its own, which Ctrl-Break can be sent to, and no window
// where there is no console to share.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// group is the job that a child runs in. It ends with its last handle, which is ours.
type group struct {
	id  int
	job windows.Handle
}

func newGroup(leader *os.Process) (group, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return group{}, fmt.Errorf("making a job: %w", err)
	}
	g := group{leader.Pid, job}
	if err := g.take(); err != nil {
		_ = windows.CloseHandle(job)
		return group{}, err
	}
	return g, nil
}

// take puts the leader into the job.
func (g group) take() error {
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err := windows.SetInformationJobObject(g.job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return fmt.Errorf("limiting a job: %w", err)
	}
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(g.id))
	if err != nil {
		return fmt.Errorf("opening the process: %w", err)
	}
	defer windows.CloseHandle(process)
	if err := windows.AssignProcessToJobObject(g.job, process); err != nil {
		return fmt.Errorf("putting the process into a job: %w", err)
	}
	return nil
}

// terminate asks the leader to end; where there is no console to ask through, it is killed.
func (g group) terminate() {
	if windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(g.id)) != nil {
		g.kill()
	}
}

// kill ends all of the job.
func (g group) kill() { _ = windows.TerminateJobObject(g.job, 1) }

// end kills what its leader has left behind.
func (g group) end() { _ = windows.CloseHandle(g.job) }
