package memory

import (
	"bytes"
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
)

// noteStray notes the run of a job that is about to be cancelled, if one may exist.
func (s *Store) noteStray(j *job) {
	if j.Engine == "" {
		return
	}
	s.strays = append(s.strays, sluice.StrayRun{JobID: j.ID, Queue: j.Queue, Engine: j.Engine, Ref: j.Ref, CancelledAt: s.now()})
	slices.SortFunc(s.strays, inTurn)
}

// inTurn is the order in which runs are listed.
func inTurn(a, b sluice.StrayRun) int {
	if order := a.CancelledAt.Compare(b.CancelledAt); order != 0 {
		return order
	}
	return bytes.Compare(a.JobID[:], b.JobID[:])
}

// StrayRuns lists runs whose jobs were cancelled.
func (s *Store) StrayRuns(ctx context.Context, queue string, after sluice.StrayRun, limit int) ([]sluice.StrayRun, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var found []sluice.StrayRun
	for _, run := range s.strays {
		if run.Queue == queue && inTurn(run, after) > 0 && len(found) < limit {
			found = append(found, run)
		}
	}
	return found, nil
}

// ForgetStrayRuns strikes runs from what StrayRuns lists.
func (s *Store) ForgetStrayRuns(ctx context.Context, runs []sluice.StrayRun) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	s.strays = slices.DeleteFunc(s.strays, func(stray sluice.StrayRun) bool {
		return slices.ContainsFunc(runs, func(run sluice.StrayRun) bool { return run.JobID == stray.JobID && run.Ref == stray.Ref })
	})
	return nil
}
