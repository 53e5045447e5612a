package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/cli"
)

// guardOf finds the folder in /proc of a worker's guard, which is a child of the worker until the worker ends.
func guardOf(t *testing.T, work *process) (folder string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range all {
		stat, err := os.ReadFile(folder + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ") // the rest begins with the state and the parent
		if fields := strings.Fields(rest); err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(work.Process.Pid) && isGuard(folder) {
			return folder
		}
	}
	t.Fatal("the worker has no guard")
	return ""
}

// isGuard reports whether a folder in /proc belongs to a guard that has not ended.
func isGuard(folder string) bool {
	line, err := os.ReadFile(folder + "/cmdline")
	return err == nil && strings.Contains(string(line), "\x00guard-programs\x00")
}

// isThere reports whether a process is still in /proc. A killed process loses its command line first, and its folder
// only when its parent has waited for it.
func isThere(folder string) bool {
	_, err := os.Stat(folder)
	return err == nil
}

// startMany starts a worker with a program that has two children: one in its own group, one in its own session. Each
// holds the pipe.
func startMany(t *testing.T, settings ...string) (work *process, pipe *os.File) {
	t.Helper()
	db, _, pipe := stubborn(t)
	set := append([]string{"settings", "set", "slow", "--db", db}, settings...)
	if out, err := exec.Command("sluice", set...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program := "exec 3>" + filepath.Join(filepath.Dir(strings.TrimPrefix(db, "sqlite:")), "pipe") + `
sleep 1000 >/dev/null 2>&1 &
setsid sh -c 'echo all of them run >&2; exec sleep 1000 >/dev/null 2>&1' &
wait`
	work = start(t, db, "work", "slow", "--", "sh", "-c", program)
	work.says(t, "all of them run")
	return work, pipe
}

func TestKilledWorkerTakesAllProcessesOfItsProgramsAlong(t *testing.T) {
	t.Parallel()
	work, pipe := startMany(t, "timeout=1h")
	guard := guardOf(t, work)
	if err := work.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	work.ends(t, -1)
	gone(t, pipe)
	for until := time.Now().Add(patience); isGuard(guard); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the guard still runs")
		}
	}
}

// A stopped worker cannot renew leases. Its programs end while it still holds the jobs, and the jobs lose no attempt.
func TestStoppedWorkerHasNoProgramsBesideItsSuccessors(t *testing.T) {
	t.Parallel()
	work, pipe := startMany(t, "timeout=1h", "lease=20s")
	signal := func(s os.Signal) {
		if err := work.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	job := func() (job sluice.Job) {
		cmd := exec.Command("sluice", "jobs", "-o", "jsonl")
		cmd.Env = work.Env
		out, err := cmd.Output()
		if err == nil {
			err = json.Unmarshal(out, &job)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return job
	}
	signal(syscall.SIGSTOP)
	gone(t, pipe)
	if held := job(); held.State != sluice.StateClaimed || time.Until(held.LeaseUntil) < 5*time.Second {
		t.Errorf("the programs ended when the job was %s, held until %s", held.State, held.LeaseUntil)
	}
	signal(syscall.SIGCONT)
	work.says(t, "all of them run")
	if again := job(); again.Attempts != 0 || again.Releases != 1 || again.Recoveries != 0 {
		t.Errorf("to be stopped cost %d attempts, %d releases and %d recoveries", again.Attempts, again.Releases, again.Recoveries)
	}
	work.interrupt(t)
	work.says(t, "worker draining")
	work.interrupt(t)
	work.ends(t, 130)
	gone(t, pipe)
}

// The guard of a stopped worker ends each program when that program's own lease is nearly over, not when the shortest
// is.
func TestGuardGivesEachProgramItsOwnTime(t *testing.T) {
	t.Parallel()
	worker, say := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cli.GuardRuns(worker)
	}()
	t.Cleanup(func() {
		_ = say.Close()
		<-ended
	})
	began := time.Now()
	for _, run := range []struct {
		name     string
		patience time.Duration
	}{{"short", 200 * time.Millisecond}, {"long", 3 * time.Second}} {
		program := exec.Command("sleep", "1000")
		program.Env = append(os.Environ(), "SLUICE_RUN="+run.name+t.Name())
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fprintf(say, "+%s%s %d\n", run.name, t.Name(), run.patience.Milliseconds()); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = program.Wait() // the guard killed it
			if lived := time.Since(began); lived < run.patience*2/3 {
				t.Errorf("the %s one was ended after %s", run.name, lived)
			}
		}()
	}
}

func TestTimeOutEndsAProcessInASessionOfItsOwn(t *testing.T) {
	t.Parallel()
	work, pipe := startMany(t, "timeout=2s", "max_attempts=100") // at one attempt at least the program gets far enough to say that all run
	gone(t, pipe)
	work.interrupt(t)
	work.ends(t, 0)
}

func TestWorkerReplacesAGuardThatIsKilledAndLeavesNone(t *testing.T) {
	t.Parallel()
	db, _, _ := stubborn(t)
	if out, err := exec.Command("sluice", "enqueue", "slow", "{}", "--db", db).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	open := func() {
		if err := os.WriteFile(gate, []byte("go on\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	work := start(t, db, "work", "slow", "--slots", "1", "--until-empty", "--", "sh", "-c", "echo the program runs >&2; read line <"+gate)
	work.says(t, "the program runs")
	first := guardOf(t, work)
	pid, err := strconv.Atoi(filepath.Base(first))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for isThere(first) {
		time.Sleep(time.Millisecond)
	}
	open()
	work.says(t, "the program runs")
	second := guardOf(t, work)
	open()
	work.ends(t, 0)
	if isGuard(second) {
		t.Error("the guard still runs")
	}
}

// If the program is itself a worker, the programs of this inner worker end too.
func TestInterruptEndsTheProgramsOfAWorkerInAProgram(t *testing.T) {
	t.Parallel()
	db, _, pipe := stubborn(t)
	if out, err := exec.Command("sluice", "enqueue", "inner", "{}", "--db", db).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	inner := "exec 3>" + filepath.Join(filepath.Dir(strings.TrimPrefix(db, "sqlite:")), "pipe") + "; setsid sh -c 'echo the inner one runs >&2; exec sleep 1000 >/dev/null 2>&1' & wait"
	work := start(t, db, "work", "slow", "--pass", "SLUICE_DB", "--", "setsid", "--wait", "sluice", "work", "inner", "--", "sh", "-c", inner)
	work.says(t, "the inner one runs")
	work.interrupt(t)
	work.says(t, "worker draining")
	work.interrupt(t)
	work.ends(t, 130)
	gone(t, pipe)
}
