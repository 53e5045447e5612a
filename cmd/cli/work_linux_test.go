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

// guardOf finds the guard of a worker, which is its child until the worker ends.
func guardOf(t *testing.T, work *process) (folder string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range all {
		stat, err := os.ReadFile(folder + "/stat")
		_, rest, _ := strings.Cut(string(stat), ") ") // state, parent, …
		if fields := strings.Fields(rest); err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(work.Process.Pid) && isGuard(folder) {
			return folder
		}
	}
	t.Fatal("the worker has no guard")
	return ""
}

// isGuard says whether a process of /proc is a guard that has not ended.
func isGuard(folder string) bool {
	line, err := os.ReadFile(folder + "/cmdline")
	return err == nil && strings.Contains(string(line), "\x00guard-programs\x00")
}

// isThere says whether a process of /proc has not been waited for. One that was killed loses its command line first, and
// its files last.
func isThere(folder string) bool {
	_, err := os.Stat(folder)
	return err == nil
}

// startMany starts a worker whose program has a child in its own group and one in a session of its own.
// Each holds the pipe.
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

// A worker that is stopped renews nothing. Its programs end while its jobs are still its own, and cost no attempt.
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

// The guard of a stopped worker ends each program when its own lease is nearly over, not when the shortest is.
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
			_ = program.Wait() // it was killed
			if lived := time.Since(began); lived < run.patience*2/3 {
				t.Errorf("the %s one was ended after %s", run.name, lived)
			}
		}()
	}
}

func TestTimeOutEndsAProcessInASessionOfItsOwn(t *testing.T) {
	t.Parallel()
	work, pipe := startMany(t, "timeout=2s", "max_attempts=100") // one of them comes as far as to say that all run
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

// A program that is a worker itself ends with all that its own programs started.
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
