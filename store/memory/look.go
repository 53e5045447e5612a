package memory

import (
	"bytes"
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
)

// Job looks one job up.
func (s *Store) Job(ctx context.Context, id sluice.ID) (sluice.Job, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.Job{}, err
	}
	defer leave()
	j := s.jobs[id]
	if j == nil {
		return sluice.Job{}, sluice.ErrNotFound
	}
	return j.copy(), nil
}

// Attempts lists a job's failed attempts.
func (s *Store) Attempts(ctx context.Context, id sluice.ID) ([]sluice.Attempt, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	j := s.jobs[id]
	if j == nil {
		return nil, sluice.ErrNotFound
	}
	return slices.Clone(j.attempts), nil
}

// Jobs lists jobs, the newest first.
func (s *Store) Jobs(ctx context.Context, filter sluice.JobFilter) (sluice.Page, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.Page{}, err
	}
	defer leave()
	var found []sluice.Job
	for _, j := range s.jobs {
		if chosen(j, filter) {
			listed := j.copy()
			listed.Payload, listed.Checkpoint, listed.Result = nil, nil, nil
			found = append(found, listed)
		}
	}
	return sluice.NewestPage(found, filter.Limit), nil
}

func chosen(j *job, f sluice.JobFilter) bool {
	switch {
	case f.Queue != "" && j.Queue != f.Queue,
		f.Tenant != "" && j.Tenant != f.Tenant,
		f.Key != "" && j.Key != f.Key,
		len(f.States) > 0 && !slices.Contains(f.States, j.State),
		!f.Before.IsZero() && bytes.Compare(j.ID[:], f.Before[:]) >= 0:
		return false
	}
	for name, value := range f.Labels {
		if got, ok := j.Labels[name]; !ok || got != value {
			return false
		}
	}
	return true
}

// Depth counts the jobs of a queue.
func (s *Store) Depth(ctx context.Context, queue string) (sluice.Depth, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.Depth{}, err
	}
	defer leave()
	d := sluice.Depth{Queue: queue}
	for _, j := range s.jobs {
		if j.Queue == queue {
			s.count(&d, j)
		}
	}
	return d, nil
}

func (s *Store) count(d *sluice.Depth, j *job) {
	figure := map[sluice.State]*int{
		sluice.StateClaimed: &d.Claimed, sluice.StateDispatched: &d.Dispatched,
		sluice.StateUncertain: &d.Uncertain, sluice.StateDead: &d.Dead,
	}[j.State]
	if j.State == sluice.StateQueued {
		switch {
		case !j.BlockedBy.IsZero():
			figure = &d.Blocked
		case j.DueAt.After(s.now()):
			figure = &d.Scheduled
		default:
			figure = &d.Ready
			if d.OldestDue.IsZero() || j.DueAt.Before(d.OldestDue) {
				d.OldestDue = j.DueAt
			}
		}
	}
	if figure != nil {
		*figure = min(*figure+1, sluice.DepthLimit)
	}
}
