package remote

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/wire"
)

// OrphanRuns lists the orphan runs of a queue.
func (s *Store) OrphanRuns(ctx context.Context, queue string, after engine.OrphanRun, limit int) ([]engine.OrphanRun, error) {
	return pages(limit, func(size int) ([]engine.OrphanRun, error) {
		q := params{}
		q.number("limit", size)
		q.id("after", after.JobID)
		q.text("ref", after.Ref)
		q.instant("since", after.CancelledAt)
		var answer struct {
			Runs []engine.OrphanRun `json:"runs"`
		}
		err := s.call(ctx, request{verb: "list orphan runs", path: queuePath(queue, "/orphan-runs"), query: q.values(), out: &answer})
		if errors.Is(err, sluice.ErrNotFound) { // a queue that is not there has none
			return nil, nil
		}
		if n := len(answer.Runs); n > 0 {
			after = answer.Runs[n-1]
		}
		return answer.Runs, err
	})
}

// RecordIntent is an [*UnsupportedError]: dispatchers work beside the database.
func (s *Store) RecordIntent(context.Context, []engine.Intent) ([]error, error) {
	return nil, s.runs("To record a run")
}

// Dispatches lists claimed and dispatched jobs for who only reads: without tokens, and not by ids, leases or pages. Anything
// else is an [*UnsupportedError]: upkeep follows runs by the tokens of their jobs, which the server keeps to itself.
func (s *Store) Dispatches(ctx context.Context, filter engine.DispatchFilter) (claims []*sluice.Claim, err error) {
	if !filter.ReadOnly || len(filter.IDs) > 0 || filter.Overdue || !filter.After.IsZero() {
		return nil, s.runs("To follow runs")
	}
	page, err := s.Jobs(ctx, sluice.JobFilter{
		Queue: filter.Queue, States: []sluice.State{sluice.StateClaimed, sluice.StateDispatched}, OldestFirst: true, Limit: cmp.Or(filter.Limit, engine.DispatchLimit),
	})
	for _, job := range page.Jobs {
		claims = append(claims, &sluice.Claim{Job: job})
	}
	return claims, err
}

// Reconciled is a job, what the server's engine knows of its run, and the event that follows for the job; none if empty.
type Reconciled struct {
	JobID  sluice.ID
	Run    engine.Outcome
	Event  sluice.Event
	Reason string
}

// Reconcile makes the server ask its engine for the runs of jobs, at most 1,000, and settle the jobs by the answers.
// Without jobs it does so for all of the queue, and tells of the first 1,000. In a dry run nothing changes.
func (s *Store) Reconcile(ctx context.Context, queue string, jobs []sluice.ID, dryRun bool) (all []Reconciled, err error) {
	var answer struct {
		Jobs []struct {
			Job    sluice.ID    `json:"job"`
			Run    wire.RunView `json:"run"`
			Event  sluice.Event `json:"event"`
			Reason string       `json:"reason"`
		} `json:"jobs"`
	}
	body := struct {
		Jobs   []sluice.ID `json:"jobs,omitempty"`
		DryRun bool        `json:"dry_run,omitempty"`
	}{jobs, dryRun}
	err = s.call(ctx, request{verb: "reconcile with the engine", method: http.MethodPost, path: queuePath(queue, "/engine/reconcile"), body: asJSON(body), out: &answer})
	for _, j := range answer.Jobs {
		all = append(all, Reconciled{j.Job, j.Run.Outcome(), j.Event, j.Reason})
	}
	return all, err
}

// AskEngine makes the server ask its engine for the run of a job.
func (s *Store) AskEngine(ctx context.Context, job sluice.ID) (engine.Outcome, error) {
	var answer wire.RunView
	err := s.call(ctx, request{verb: "ask the engine", path: jobPath(job, "/run"), out: &answer})
	return answer.Outcome(), err
}

// EngineCheck is what the server's engine says about a queue. Faults are sentences for people; none: it can run the jobs.
type EngineCheck wire.EngineCheck

// CheckEngine makes the server ask its engine whether it can run the jobs of a queue. Start also starts a run, and ends it.
func (s *Store) CheckEngine(ctx context.Context, queue string, start bool) (answer EngineCheck, err error) {
	body := struct {
		Start bool `json:"start,omitempty"`
	}{start}
	return answer, s.call(ctx, request{verb: "check the engine", method: http.MethodPost, path: queuePath(queue, "/engine/check"), body: asJSON(body), out: &answer})
}

// ForgetOrphanRuns is an [*UnsupportedError]: upkeep follows runs.
func (s *Store) ForgetOrphanRuns(context.Context, []engine.OrphanRun) error {
	return s.runs("To forget runs")
}

// runs refuses what the server does with its own engines.
func (s *Store) runs(what string) error {
	if err := s.opened(what); err != nil {
		return err
	}
	return &UnsupportedError{what, "the server starts, follows and settles runs with engines of its own", "use the requests on engines of docs/api.md, or open the database"}
}
