//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// inGroup puts a program into a process group of its own: an interrupt at the terminal is ours to
// pass on, and the program's children end with it.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// killGroup ends what is left of a program's group, and says whether anything was.
func killGroup(cmd *exec.Cmd) bool {
	return cmd.Process != nil && syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) == nil
}
