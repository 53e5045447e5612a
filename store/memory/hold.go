package memory

import (
	"bytes"
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/internal/storing"
)

// jobHold is the hold of a job.
type jobHold struct {
	hold.Held
	behind sluice.ID // the job that it waited for when the hold began
}

// waitsFor returns the job that a job waits for, or would wait for if nobody held it.
func (j *job) waitsFor() sluice.ID {
	if j.hold != nil {
		return j.hold.behind
	}
	return j.BlockedBy
}

// Hold holds queued jobs.
func (s *Store) Hold(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.each(ctx, ids, act, func(j *job) error {
		if j.State != sluice.StateQueued || j.hold != nil {
			return notAllowed(audit.EventHold, j)
		}
		s.hold(j, act)
		s.wait(j)
		s.unblock(j.ID) // those before it in its order need not wait for it
		return nil
	})
}

// hold makes a job wait for itself until somebody releases it.
func (s *Store) hold(j *job, act sluice.Act) {
	j.hold = &jobHold{hold.Held{JobID: j.ID, Queue: j.Queue, Reason: act.Reason, By: act.By, At: s.now().UTC()}, sluice.ID{}}
	if j.BlockedBy != j.ID {
		j.hold.behind = j.BlockedBy
	}
	j.BlockedBy, j.parked = j.ID, false
	s.held[j.ID] = j
	s.tell(j, audit.EventHold, j.State, act)
}

// endHold ends the hold of a job, if it has one.
func (s *Store) endHold(j *job) {
	j.hold = nil
	delete(s.held, j.ID)
}

// Release ends the holds of jobs.
func (s *Store) Release(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.each(ctx, ids, act, func(j *job) error {
		if j.State != sluice.StateQueued || j.hold == nil {
			return notAllowed(audit.EventReleaseHold, j)
		}
		entry := moveEntry(j, audit.EventReleaseHold, j.State, act)
		entry.Before = storing.HoldText(j.hold.Reason, j.hold.By, j.hold.At)
		s.add(entry)
		j.BlockedBy = j.hold.behind
		s.endHold(j)
		if !s.look(j) {
			s.wait(j)
		}
		return nil
	})
}

// Holds lists holds, the newest job first.
func (s *Store) Holds(ctx context.Context, filter hold.Filter) ([]hold.Held, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []hold.Held
	for id, j := range s.held {
		if filter.Queue != "" && j.Queue != filter.Queue ||
			filter.Jobs != nil && !slices.Contains(filter.Jobs, id) ||
			!filter.Before.IsZero() && bytes.Compare(id[:], filter.Before[:]) >= 0 {
			continue
		}
		out = append(out, j.hold.Held)
	}
	slices.SortFunc(out, func(a, b hold.Held) int { return bytes.Compare(b.JobID[:], a.JobID[:]) })
	return out[:min(len(out), filter.Limit)], nil
}
