package remote

import (
	"context"
	"errors"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
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

// Dispatches is an [*UnsupportedError]: upkeep follows runs by the tokens of their jobs, which the server keeps to itself.
func (s *Store) Dispatches(context.Context, engine.DispatchFilter) ([]*sluice.Claim, error) {
	return nil, s.runs("To follow runs")
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
