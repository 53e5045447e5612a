package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
)

func (a *app) holdCommand() *cobra.Command {
	return a.actCommand(&cobra.Command{
		Use:   "hold ID…|- --reason WHY",
		Short: "Hold waiting jobs until somebody releases them",
		Long: `Holds waiting jobs: no claim takes them until "sluice release". A held job stays queued; it expires,
and can be cancelled, as any other. "sluice why" shows who holds it, since when and why.`,
		Example: `  sluice hold 01a1fb72-1dea-7abc-8fc6-99e4817522bb --reason "check the amount"
  sluice hold --all --queue mail --tenant acme --reason "on probation" --dry-run`,
	}, &selection{kind: operation.KindHold}, func() (verb, error) {
		return verb{name: "held", states: []sluice.State{sluice.StateQueued}, on: func(ctx context.Context, store sluice.Store, ids []sluice.ID) error {
			return hold.Hold(ctx, store, ids, a.act(""))
		}, left: hold.NotHeld}, nil
	})
}

func (a *app) releaseCommand() *cobra.Command {
	s := &selection{kind: operation.KindRelease}
	return a.actCommand(&cobra.Command{
		Use:   "release ID…|-",
		Short: "Release held jobs",
		Long: `Ends holds. A released job waits as if nobody had held it: until it is due, for the jobs that it runs
after, for its turn. --all releases the held jobs that match.`,
		Example: `  sluice release 01a1fb72-1dea-7abc-8fc6-99e4817522bb
  sluice release --all --queue mail --tenant acme`,
	}, s, func() (verb, error) {
		s.query.held = s.all
		return verb{name: "released", states: []sluice.State{sluice.StateQueued}, on: func(ctx context.Context, store sluice.Store, ids []sluice.ID) error {
			return hold.Release(ctx, store, ids, a.act(""))
		}}, nil
	})
}

// heldJob is a job with its hold.
type heldJob struct {
	sluice.Job
	Hold hold.Held `json:"hold"`
}

// listHeld prints a page of held jobs, and how to get the next.
func (a *app) listHeld(ctx context.Context, filter sluice.JobFilter) error {
	query, err := (&queryFlags{held: true}).query(filter)
	if err != nil {
		return err
	}
	return a.withClient(ctx, func(ctx context.Context, store sluice.Store, _ *sluice.Client) error {
		held, next, err := readHeld(ctx, store, query, filter)
		if err != nil {
			return err
		}
		if len(held) == 0 && next.IsZero() && a.output == "table" {
			a.note("no held jobs")
			return nil
		}
		if err := printList(a, held, func(j heldJob) string { return j.ID.String() }, heldColumns()); err != nil {
			return err
		}
		if !next.IsZero() {
			a.note("more: --before %s", next)
		}
		return nil
	})
}

// readHeld reads a page of held jobs that match, and the job after which the next page begins. Zero: no page follows.
func readHeld(ctx context.Context, store sluice.Store, query search.Query, filter sluice.JobFilter) (found []heldJob, next sluice.ID, err error) {
	if !filter.Batch.IsZero() {
		return readHeldOfBatch(ctx, store, query, filter)
	}
	queue := filter.Queue
	if sluice.IsGroup(queue) {
		queue = "" // the query chooses the queues of the group
	}
	holds, err := hold.List(ctx, store, hold.Filter{Queue: queue, Before: filter.Before, Limit: filter.Limit})
	if err != nil {
		return nil, next, err
	}
	for _, held := range holds {
		job, err := store.Job(ctx, held.JobID)
		if err != nil && !errors.Is(err, sluice.ErrNotFound) {
			return nil, next, err
		}
		if job.Payload = nil; err == nil && query.Matches(job) {
			found = append(found, heldJob{job, held})
		}
	}
	if len(holds) > 0 && len(holds) == filter.Limit {
		next = holds[len(holds)-1].JobID
	}
	return found, next, nil
}

// readHeldOfBatch does the same for a batch: the store alone knows which jobs are in it, and in the batches in it.
func readHeldOfBatch(ctx context.Context, store sluice.Store, query search.Query, filter sluice.JobFilter) (found []heldJob, next sluice.ID, err error) {
	if sluice.IsGroup(filter.Queue) {
		filter.Queue = "" // the query chooses the queues of the group
	}
	filter.States = []sluice.State{sluice.StateQueued}
	page, err := sluice.NewClient(store, sluice.ClientOptions{}).Jobs(ctx, filter)
	if err != nil {
		return nil, next, err
	}
	for _, job := range page.Jobs {
		if !query.Matches(job) {
			continue
		}
		held, isHeld, err := hold.Of(ctx, store, job)
		if err != nil {
			return nil, next, err
		}
		if job.Payload = nil; isHeld {
			found = append(found, heldJob{job, held})
		}
	}
	return found, page.Next, nil
}

func heldColumns() []column[heldJob] {
	return []column[heldJob]{
		{"ID", func(j heldJob) string { return j.ID.String() }, false},
		{"QUEUE", func(j heldJob) string { return j.Queue }, false},
		{"TENANT", func(j heldJob) string { return orDash(j.Tenant) }, false},
		{"PRIO", func(j heldJob) string { return fmt.Sprint(j.Priority) }, true},
		{"DUE", func(j heldJob) string { return ago(j.DueAt) }, true},
		{"HELD", func(j heldJob) string { return ago(j.Hold.At) }, true},
		{"BY", func(j heldJob) string { return j.Hold.By }, false},
		{"REASON", func(j heldJob) string { return j.Hold.Reason }, false},
	}
}
