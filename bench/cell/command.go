package cell

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/bench/stat"
)

// commandRuns is how often each command runs; the median counts.
const commandRuns = 15

// command runs the command on the store of a task, and returns its time in milliseconds.
func (t Task) command(ctx context.Context, args ...string) (float64, error) {
	at := withoutPool(t.Place)
	if t.Store == SQLite {
		at = "sqlite:" + t.Place
	}
	cmd := exec.CommandContext(ctx, t.Sluice, args...)
	cmd.Env = append(os.Environ(), "SLUICE_DB="+at)
	begun := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("sluice %q: %w: %.1000s", args, err, out)
	}
	return millis(time.Since(begun)), nil
}

func (t Task) medianCommand(ctx context.Context, args ...string) (float64, error) {
	took := make([]float64, 0, commandRuns)
	for range commandRuns {
		one, err := t.command(ctx, args...)
		if err != nil {
			return 0, err
		}
		took = append(took, one)
	}
	return stat.Median(took), nil
}

// timeCommands adds the times of commands that read, without the time that the program needs to start.
func (t Task) timeCommands(ctx context.Context, client *sluice.Client, result Result) error {
	waiting, err := client.Jobs(ctx, sluice.JobFilter{States: []sluice.State{sluice.StateQueued}, Limit: 1})
	if err != nil || len(waiting.Jobs) == 0 {
		return fmt.Errorf("%d jobs wait: %w", len(waiting.Jobs), err)
	}
	start, err := t.medianCommand(ctx, "version")
	if err != nil {
		return err
	}
	for figure, args := range map[Figure][]string{
		QueuesTime: {"queues"}, JobsTime: {"jobs"}, StatsTime: {"stats"}, ForecastTime: {"forecast", parcels.Name()},
		WhyTime: {"why", waiting.Jobs[0].ID.String()},
	} {
		whole, err := t.medianCommand(ctx, args...)
		if err != nil {
			return err
		}
		result[figure] = max(0, whole-start)
	}
	return nil
}

// measureFile times the command that stores the jobs of a file.
func measureFile(ctx context.Context, task Task) (Result, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "sluice-bench-file-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "jobs.jsonl")
	if err := writeLines(path, task); err != nil {
		return nil, err
	}
	took, err := task.command(ctx, "enqueue", "--file", path)
	return Result{FileTime: took}, err
}

// writeLines writes task.Jobs lines, spread over task.Queues queues.
func writeLines(path string, task Task) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(file)
	for i := range task.Jobs {
		_, _ = fmt.Fprintf(out, `{"queue":%q,"payload":{"p":%q}}`+"\n", fleetQueue(i%task.Queues), newParcel().P)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}
