//go:build unix

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// wave is a store, and a file of jobs for it.
type wave struct {
	store     *sqlite.Store
	client    *sluice.Client
	db, file  string
	lines     int
	arguments []string
}

func newWave(t *testing.T, lines int, arguments ...string) wave {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "jobs.db")
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "{\"payload\":%d}\n", i+1)
	}
	w := wave{
		store: store, client: sluice.NewClient(store, sluice.ClientOptions{}), db: "sqlite:" + path, file: filepath.Join(folder, "wave.jsonl"), lines: lines,
		arguments: append([]string{"enqueue", "mail"}, arguments...),
	}
	if err := os.WriteFile(w.file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	w.arguments = append(w.arguments, "--file", w.file)
	return w
}

// resume runs the command again from where it was cut off, and checks that each line is stored once.
func (w wave) resume(t *testing.T, arguments ...string) {
	t.Helper()
	out, err := exec.Command("sluice", append(append(w.arguments, "--db", w.db), arguments...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	page, err := w.client.Jobs(t.Context(), sluice.JobFilter{Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for _, listed := range page.Jobs {
		job, err := w.client.Job(t.Context(), listed.ID)
		if err != nil {
			t.Fatal(err)
		}
		seen[string(job.Payload)]++
	}
	for i := range w.lines {
		if n := seen[fmt.Sprint(i+1)]; n != 1 {
			t.Errorf("line %d is stored %d times", i+1, n)
		}
	}
	if len(page.Jobs) != w.lines {
		t.Errorf("%d jobs of %d lines; it said\n%s", len(page.Jobs), w.lines, out)
	}
}

// silent is a store that accepts one batch, and then never answers again.
type silent struct {
	sluice.Store
	batches int
	asked   func()
}

func (s *silent) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	if s.batches++; s.batches == 1 {
		return s.Store.Enqueue(ctx, jobs)
	}
	s.asked()
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestInterruptEndsABatchThatTheStoreDoesNotAnswer(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	store := &silent{Store: memory.New(memory.Options{}), asked: interrupt}
	told, err := cli.StoreLines(ctx, sluice.NewClient(store, sluice.ClientOptions{}), strings.Repeat("{\"payload\":1}\n", 5))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if !regexp.MustCompile(`(?m)^2 stored, 0 duplicates, 0 refused, and lines 3 to 4 may be; go on with --resume \S+0{8} --skip 2$`).MatchString(told) {
		t.Errorf("it says:\n%s", told)
	}
}

func TestEnqueueOfANamedPipeThatNobodyWritesEndsAtAnInterrupt(t *testing.T) {
	t.Parallel()
	fifo := filepath.Join(t.TempDir(), "jobs")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if printed, code := cli.Run(ctx, "enqueue", "mail", "--file", fifo, "--db", "sqlite:"+fifo+".db"); code != 130 {
		t.Errorf("exit code %d: %s", code, printed)
	}
}

func TestEnqueueOfAFileGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	w := newWave(t, 3000, "--lines", "10")
	// The pipe holds half of the lines and stays open, so the command cannot finish before the test kills it.
	text, err := os.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	fifo := w.file + ".fifo"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }()
	if _, err := pipe.Write(text[:len(text)/2]); err != nil {
		t.Fatal(err)
	}
	enqueue := start(t, w.db, "enqueue", "mail", "--lines", "10", "--file", fifo)
	line, err := enqueue.stderr.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	run := regexp.MustCompile(`--resume (\S+)`).FindStringSubmatch(line)
	if run == nil {
		t.Fatalf("it says %q", line)
	}
	for stored := 0; stored < 50; {
		depth, err := w.client.Depth(t.Context(), "mail")
		if err != nil {
			t.Fatal(err)
		}
		stored = depth.Ready
	}
	if err := enqueue.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	enqueue.ends(t, -1)
	w.resume(t, "--resume", run[1])
	w.resume(t, "--resume", run[1], "--lines", "7")
}

// TestRunWhoseJobsMayHaveBeenDeletedIsNotResumed enqueues a file whose jobs have ended and been deleted.
func TestRunWhoseJobsMayHaveBeenDeletedIsNotResumed(t *testing.T) {
	t.Parallel()
	w := newWave(t, 3)
	settings := sluice.DefaultSettings()
	settings.KeepCancelled = time.Millisecond
	if _, err := w.client.EnsureQueue(t.Context(), "mail", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	out := run(t, w.db, w.arguments...)
	page, err := w.client.Jobs(t.Context(), sluice.JobFilter{Limit: 10})
	if err != nil || len(page.Jobs) != 3 {
		t.Fatalf("%d jobs, %v", len(page.Jobs), err)
	}
	for _, job := range page.Jobs {
		if err := w.client.Cancel(t.Context(), []sluice.ID{job.ID}, sluice.Act{By: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	run(t, w.db, "upkeep", "--once")
	resume := append(slices.Clone(w.arguments), "--db", w.db, "--resume", regexp.MustCompile(`--resume (\S+)`).FindStringSubmatch(out)[1])
	again, err := exec.Command("sluice", resume...).CombinedOutput()
	if exit, is := errors.AsType[*exec.ExitError](err); !is || exit.ExitCode() != 4 || !strings.Contains(string(again), `queue "mail" keeps cancelled jobs for 1ms: lines that it stored may have been deleted since`) {
		t.Errorf("%v\n%s", err, again)
	}
	if depth, err := w.client.Depth(t.Context(), "mail"); err != nil || depth.Ready != 0 {
		t.Errorf("%d jobs are stored again, %v", depth.Ready, err)
	}
	if out := run(t, w.db, append(w.arguments, "--resume", resume[len(resume)-1], "--skip", "2")...); !strings.Contains(out, "1 stored, 0 duplicates") {
		t.Errorf("with --skip it says\n%s", out)
	}
}
