//go:build unix

package cli_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is a running `sluice`, with its standard error.
type process struct {
	*exec.Cmd
	stderr *bufio.Reader
}

func start(t *testing.T, db string, args ...string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sluice", args...)
	cmd.Env = append(os.Environ(), "SLUICE_DB="+db)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &process{cmd, bufio.NewReader(stderr)}
}

// says reads the standard error of the process until a line contains a text.
func (p *process) says(t *testing.T, text string) {
	t.Helper()
	var all strings.Builder
	for {
		line, err := p.stderr.ReadString('\n')
		all.WriteString(line)
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("it never said %q:\n%s", text, all.String())
		}
	}
}

// patience is how long tests wait for an event before they fail. It is long because the machine may be busy.
const patience = 10 * time.Minute

// ends waits until the process ends and nothing holds its standard error any more, so no child is left. It checks the
// exit code, and returns the rest of the standard error.
func (p *process) ends(t *testing.T, want int) string {
	t.Helper()
	rest, err := io.ReadAll(p.stderr)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if code := p.ProcessState.ExitCode(); code != want {
		t.Errorf("the exit code is %d, want %d:\n%s", code, want, rest)
	}
	return string(rest)
}

func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

// stubborn makes a store with one job, and a program that never ends by itself. The program holds a pipe open, so the
// test can see its end.
func stubborn(t *testing.T) (db, program string, pipe *os.File) {
	t.Helper()
	folder := t.TempDir()
	db = "sqlite:" + filepath.Join(folder, "jobs.db")
	if out, err := exec.Command("sluice", "enqueue", "slow", "{}", "--migrate", "--db", db).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	path := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pipe.Close() })
	return db, "trap '' TERM INT; exec 3>" + path + "; echo the program runs >&2; while :; do sleep 60; done", pipe
}

func gone(t *testing.T, pipe *os.File) {
	t.Helper()
	if err := pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(pipe); err != nil {
		t.Errorf("the program still runs: %v", err)
	}
}

func TestSecondInterruptLeavesAtOnceAndTakesTheProgramsAlong(t *testing.T) {
	t.Parallel()
	db, program, pipe := stubborn(t)
	work := start(t, db, "work", "slow", "--", "sh", "-c", program)
	work.says(t, "the program runs")
	work.interrupt(t)
	work.says(t, "worker draining")
	work.interrupt(t)
	work.ends(t, 130)
	gone(t, pipe)
}

func TestDrainThatTakesTooLongReleasesTheJob(t *testing.T) {
	t.Parallel()
	db, program, pipe := stubborn(t)
	work := start(t, db, "work", "slow", "--grace", "100ms", "--", "sh", "-c", program)
	work.says(t, "the program runs")
	work.interrupt(t)
	rest := work.ends(t, 124)
	if !strings.Contains(rest, "why: drain timed out\n") || !strings.Contains(rest, "give the drain more time with --grace") {
		t.Errorf("it says:\n%s", rest)
	}
	gone(t, pipe)
	out, err := exec.Command("sluice", "jobs", "--db", db, "-o", "jsonl").Output()
	if err != nil {
		t.Fatal(err)
	}
	if text := string(out); !strings.Contains(text, `"state":"queued"`) || !strings.Contains(text, `"attempts":0,"releases":1`) {
		t.Errorf("the job is %s", text)
	}
}

func TestInterruptedDemoEndsWithItsWorkers(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]struct {
		signal os.Signal
		code   int
	}{"interrupt": {os.Interrupt, 130}, "kill": {os.Kill, -1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			demo := start(t, "", "demo", "--kill", "--payments", "100", "--due-in", "1h", "--dir", folder)
			demo.says(t, "Enqueuing 100")
			db := "sqlite:" + filepath.Join(folder, "demo.db")
			for seen := 0; seen < 2; {
				out, err := exec.Command("sluice", "holders", "--db", db, "-o", "jsonl").Output()
				if err != nil {
					t.Fatal(err)
				}
				seen = strings.Count(string(out), `"role":"worker"`)
			}
			if err := demo.Process.Signal(stop.signal); err != nil {
				t.Fatal(err)
			}
			demo.ends(t, stop.code)
		})
	}
}

func TestInterruptEndsReadingOfStandardInput(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = reader.Close(), writer.Close() }()
	db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	cmd := exec.CommandContext(t.Context(), "sluice", "enqueue", "mail", "--file", "-", "--lines", "1", "--migrate", "--db", db)
	cmd.Stdin = reader
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	enqueue := &process{cmd, bufio.NewReader(stderr)}
	if _, err := writer.WriteString("{\"payload\":1}\nno job\n"); err != nil {
		t.Fatal(err)
	}
	enqueue.says(t, "line 2:")
	enqueue.interrupt(t)
	rest := enqueue.ends(t, 130)
	if !regexp.MustCompile(`(?m)^1 stored, 0 duplicates, 1 refused; go on with --resume \S+00000000 --skip 2$`).MatchString(rest) {
		t.Errorf("it says:\n%s", rest)
	}
}
