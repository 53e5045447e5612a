package memory

import (
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/schedule"
)

// DeleteQueue deletes an empty queue.
func (s *Store) DeleteQueue(ctx context.Context, name string, act sluice.Act) error {
	return s.strike(ctx, audit.ObjectQueue, name, act, func() error { return s.deleteQueue(name) })
}

func (s *Store) deleteQueue(name string) error {
	if _, known := s.queues[name]; !known {
		return sluice.ErrNotFound
	}
	holds, err := s.holdsOf(name)
	if err != nil {
		return err
	}
	if !holds.Empty() {
		return &sluice.QueueNotEmptyError{Queue: name, Holds: holds}
	}
	delete(s.queues, name)
	delete(s.backlogs, name)
	for of := range s.limits {
		if of.queue == name {
			delete(s.limits, of)
		}
	}
	for key := range s.alerting.rules {
		if key.queue == name {
			delete(s.alerting.rules, key)
		}
	}
	for key := range s.alerting.alerts {
		if key.queue == name {
			delete(s.alerting.alerts, key)
		}
	}
	s.alerting.silences = slices.DeleteFunc(s.alerting.silences, func(silence alert.Silence) bool { return silence.Queue == name })
	s.waves = slices.DeleteFunc(s.waves, func(w forecast.QueueCounts) bool { return w.Queue == name })
	return nil
}

// holdsOf counts the jobs and other contents of a queue.
func (s *Store) holdsOf(name string) (holds sluice.QueueHolds, err error) {
	for _, j := range s.jobs {
		switch {
		case j.Queue != name:
		case j.live:
			holds.Unfinished = min(holds.Unfinished+1, sluice.QueueHoldsLimit)
		default:
			holds.Finished = min(holds.Finished+1, sluice.QueueHoldsLimit)
		}
	}
	for _, run := range s.strays {
		if run.Queue == name {
			holds.OpenRuns = min(holds.OpenRuns+1, sluice.QueueHoldsLimit)
		}
	}
	for _, kept := range s.operations {
		if kept.ended {
			continue
		}
		op, err := operation.FromRow(kept.version, kept.body, s.now())
		if err != nil {
			return holds, err
		}
		if op.Query.Queue == name {
			holds.Operations = append(holds.Operations, op.ID)
		}
	}
	for _, one := range byName(s.schedules, func(s schedule.Schedule) string { return s.Name }) {
		if one.Queue == name && len(holds.Schedules) < sluice.QueueHoldsLimit {
			holds.Schedules = append(holds.Schedules, one.Name)
		}
	}
	return holds, nil
}

// gone reports whether a queue of inserts was deleted after its settings were read.
func (s *Store) gone(inserts []sluice.Insert) bool {
	return slices.ContainsFunc(inserts, func(in sluice.Insert) bool {
		_, stored := s.queues[in.Queue]
		return in.Known && !stored
	})
}
