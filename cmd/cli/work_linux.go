package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// dieWithUs makes the kernel kill a program when its starting thread ends, as when this process is killed. The caller
// keeps the thread.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// guardCommand is this program as a guard, in its own session: no signal to the worker's group reaches it.
func guardCommand() *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", guardName) // works even if the file was replaced
	cmd.Args[0] = os.Args[0]
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// killRuns kills the processes of runs, including those that they start meanwhile.
func killRuns(runs map[string]bool) {
	if len(runs) == 0 {
		return
	}
	// A process briefly has no environment while it becomes another program: only 2 looks without a process are an end.
	found, until := false, time.Now().Add(endWithin)
	for clean := 0; clean < 2 && time.Now().Before(until); clean++ {
		if killOnce(runs) {
			found, clean = true, -1
		}
		if found {
			time.Sleep(time.Millisecond) // killed processes take a moment to end
		}
	}
}

// killOnce kills the processes of runs that it finds, and reports whether there were any.
func killOnce(runs map[string]bool) (found bool) {
	entries, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if !bears(entry, runs) {
			continue
		}
		found = true
		pid, err := strconv.Atoi(filepath.Base(entry))
		if err != nil {
			continue
		}
		process, err := os.FindProcess(pid)
		if err == nil && bears(entry, runs) { // else another process may have got the number
			_ = process.Kill() // it may have ended
			_ = process.Release()
		}
	}
	return found
}

// bears reports whether a process of /proc has the mark of one of the runs. Processes of other users are unreadable.
func bears(entry string, runs map[string]bool) bool {
	environment, err := os.ReadFile(filepath.Join(entry, "environ"))
	if err != nil {
		return false
	}
	for variable := range bytes.SplitSeq(environment, []byte{0}) {
		if marks, ok := bytes.CutPrefix(variable, []byte(runVariable+"=")); ok {
			return slices.ContainsFunc(strings.Split(string(marks), "/"), func(run string) bool { return runs[run] })
		}
	}
	return false
}
