package memory

import (
	"bytes"
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/internal/storing"
)

// Await makes the store signal the ends of jobs.
func (s *Store) Await(_ context.Context, ids []sluice.ID) error {
	s.awaited.Add(ids, time.Now())
	return nil
}

// Ended returns the ends of the jobs that have ended or are not stored.
func (s *Store) Ended(ctx context.Context, ids []sluice.ID) (ended []await.End, err error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, id := range ids {
		switch j := s.jobs[id]; {
		case j == nil:
			ended = append(ended, await.End{ID: id})
		case !j.live:
			end := await.End{ID: id, State: j.State, Error: j.Error, FinishedAt: j.FinishedAt}
			end.Result, end.ResultRemoved = storing.Result(bytes.Clone(j.Result))
			ended = append(ended, end)
		}
	}
	return ended, nil
}
