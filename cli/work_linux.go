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

// dieWithUs has the kernel kill a program when the thread that started it ends, as it does when this
// process is killed. The caller keeps the thread.
func dieWithUs(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }

// guardCommand is this program as a guard, in a session of its own: no signal to the worker's group reaches it.
func guardCommand() *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", guardName) // also where the file was replaced since
	cmd.Args[0] = os.Args[0]
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// killRuns kills the processes of runs, and what they start meanwhile.
func killRuns(runs map[string]bool) {
	if len(runs) == 0 {
		return
	}
	// A process has no environment for a moment while it becomes another program: only two looks that
	// find nothing are an end.
	found, until := false, time.Now().Add(endWithin)
	for clean := 0; clean < 2 && time.Now().Before(until); clean++ {
		if killOnce(runs) {
			found, clean = true, -1
		}
		if found {
			time.Sleep(time.Millisecond) // those that were killed take a moment to end
		}
	}
}

// killOnce kills the processes of runs that it comes upon, and says whether there were any.
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
		if err == nil && bears(entry, runs) { // else another process may have got the number meanwhile
			_ = process.Kill() // it may have ended
			_ = process.Release()
		}
	}
	return found
}

// bears says whether a process of /proc has the mark of one of the runs. Those of other users cannot be read.
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
