package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/health"
)

const (
	// longWait is how long a job must be due before doctor explains its wait.
	longWait = time.Minute
	// farStart is how late a start must be for its limits to deserve a look.
	farStart = 10 * time.Minute
	// waitingLooks is how many of a queue's newest waiting jobs doctor reads; waitingQueues is of how many queues.
	waitingLooks  = 100
	waitingQueues = 50
)

// examineWaiting explains why a long-due job does not start, and why attempts fail. These are notes: limits and retries
// delay jobs on purpose.
func examineWaiting(ctx context.Context, store sluice.Store, rows []queueRow) ([]finding, error) {
	var out []finding
	looked := 0
	for _, q := range rows {
		if q.Paused || q.Depth.Ready+q.Depth.Scheduled+q.Depth.Blocked == 0 || looked == waitingQueues {
			continue
		}
		looked++
		page, err := store.Jobs(ctx, sluice.JobFilter{Queue: q.Name, States: []sluice.State{sluice.StateQueued}, Limit: waitingLooks})
		if err != nil {
			return nil, err
		}
		told := make(map[string]bool)
		for _, job := range examples(page.Jobs) {
			found, err := explainWaiting(ctx, store, job, told)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// examples picks the jobs that doctor explains: the longest and the shortest due (a low rate delays the latter most),
// then one that long waits for another job, and one whose last attempt failed.
func examples(jobs []sluice.Job) []sluice.Job {
	var due, behind, failed []sluice.Job
	for _, j := range jobs {
		switch wait := time.Since(j.DueAt); {
		case wait > longWait && j.BlockedBy.IsZero():
			due = append(due, j)
		case wait > longWait:
			behind = append(behind, j)
		case wait < 0 && j.Attempts > 0:
			failed = append(failed, j)
		}
	}
	slices.SortFunc(due, func(a, b sluice.Job) int { return cmp.Or(a.DueAt.Compare(b.DueAt), bytes.Compare(a.ID[:], b.ID[:])) })
	if len(due) > 2 {
		due = []sluice.Job{due[0], due[len(due)-1]}
	}
	return slices.Concat(due, behind[:min(len(behind), 1)], failed[:min(len(failed), 1)])
}

// explainWaiting reports each closed reason that a person can open, once.
func explainWaiting(ctx context.Context, store sluice.Store, job sluice.Job, told map[string]bool) ([]finding, error) {
	why, err := explain.Job(ctx, store, job.ID)
	if errors.Is(err, sluice.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []finding
	for _, g := range why.Closed() {
		switch g.Name {
		case "paused", "workers", "dispatchers", "upkeep", "state": // reported with the queue, or gone since
			continue
		}
		if g.Repair == "" || told[g.Name] {
			continue
		}
		told[g.Name] = true
		f := finding{
			Check: "wait", Well: true, Severity: health.SeverityNote, What: fmt.Sprintf("%s: job %s does not start: %s", job.Queue, job.ID, g.Summary),
			Why: "it has been due since " + job.DueAt.UTC().Format(time.RFC3339), Repair: g.Repair,
		}
		if g.Name == "due" {
			f.Why = "each attempt that fails takes it nearer to the dead letters"
		}
		if wait := why.Start.Sub(why.Now); wait > farStart {
			f.Why += fmt.Sprintf("; if nothing changes it starts in %s", draw.Duration(wait))
		}
		out = append(out, f)
	}
	return out, nil
}
