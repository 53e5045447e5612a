package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
)

var _ health.Maintainer = (*Store)(nil)

// Maintain refuses tasks about files.
func (s *Store) Maintain(_ context.Context, task health.Task, _ bool) (health.Maintained, error) {
	return health.Maintained{}, &sluice.InvalidError{Field: "task", Rule: string(task) + " must be retention: a store in memory has no file"}
}

// Overdue counts the jobs that Prune would delete now.
func (s *Store) Overdue(ctx context.Context, limit int) (out []health.Overdue, err error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for of, ended := range s.history {
		one := health.Overdue{Queue: of.queue, Outcome: of.outcome}
		keep := s.settings(of.queue).Keep(of.outcome)
		for _, e := range ended {
			if keep == 0 || !e.at.Add(keep).Before(s.now()) || one.Jobs == limit {
				break
			}
			if s.last(e) {
				one.Jobs++
			}
		}
		if limit -= one.Jobs; one.Jobs > 0 {
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b health.Overdue) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Outcome, b.Outcome))
	})
	return out, nil
}
