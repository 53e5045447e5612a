//go:build unix

package cli

import (
	"os/exec"
	"syscall"
)

// inGroup gives a program its own process group. This process handles terminal interrupts, and the program's children
// end with it.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// killGroup ends what is left of a program's group, and reports whether there was anything.
func killGroup(cmd *exec.Cmd) bool {
	return cmd.Process != nil && syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) == nil
}
