package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/storing"
)

// Cancel ends unfinished jobs.
func (s *Store) Cancel(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.each(ctx, ids, act, func(j *job) error {
		if !sluice.MoveOf(sluice.EventCancel).Allows(j.State) {
			return notAllowed(sluice.EventCancel, j)
		}
		s.noteStray(j)
		s.finish(j, sluice.EventCancel, act)
		return nil
	})
}

// Requeue starts a new life of dead, cancelled and uncertain jobs, or takes such a life back if
// act.Undo is set.
func (s *Store) Requeue(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	if act.Undo {
		return s.undoRequeue(ctx, ids, act)
	}
	var requeued []*job
	takePlace := func() {
		for _, j := range requeued { // only now, because jobs that they run after may have been requeued by the same act
			s.takePlaceAgain(j)
		}
	}
	return s.eachAndThen(ctx, ids, act, takePlace, func(j *job) error {
		if !sluice.MoveOf(sluice.EventRequeue).Allows(j.State) {
			return notAllowed(sluice.EventRequeue, j)
		}
		if err := s.retakeKey(j); err != nil {
			return err
		}
		from := j.State
		if j.before = nil; from.Finished() {
			before := j.Job
			j.before = &before
			s.countMember(j, from, -1)
		}
		if act.BesideOpenRun {
			s.letBeside(j, act)
		}
		j.State, j.live = sluice.StateQueued, true
		j.Generation++
		j.Attempts, j.Releases, j.Recoveries = 0, 0, 0
		j.Error, j.Result, j.Checkpoint, j.Ref, j.Engine, j.Holder = "", nil, nil, "", "", ""
		j.ClaimedAt, j.DispatchedAt, j.LeaseUntil, j.FinishedAt, j.ExpiresAt = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}
		j.DueAt, j.token = s.now(), sluice.Token{}
		s.tally.Moved(j.Queue, "", sluice.EventRequeue, 1)
		s.tell(j, sluice.EventRequeue, from, act)
		if from == sluice.StateUncertain { // the requeued job has left no order: later jobs of its order already wait for it
			s.wait(j)
			s.signal(sluice.Signal{Queue: j.Queue})
			return nil
		}
		requeued = append(requeued, j)
		return nil
	})
}

// undoRequeue ends the lives that requeues began, with the state and figures of the lives before.
func (s *Store) undoRequeue(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.each(ctx, ids, act, func(j *job) error {
		if j.State != sluice.StateQueued || j.before == nil || j.Attempts+j.Releases+j.Recoveries > 0 {
			return notAllowed(sluice.EventUndo, j)
		}
		old := *j.before
		move, known := storing.UndoneMove(old.State)
		if !known {
			return notAllowed(sluice.EventUndo, j)
		}
		s.tally.Moved(j.Queue, "", move.Event, 1)
		s.end(j, move.Event, act)
		s.endedBefore(j, old.FinishedAt)
		j.DueAt, j.ClaimedAt, j.DispatchedAt, j.FinishedAt = old.DueAt, old.ClaimedAt, old.DispatchedAt, old.FinishedAt
		j.Attempts, j.Releases, j.Recoveries = old.Attempts, old.Releases, old.Recoveries
		j.Holder, j.Ref, j.Result, j.Error = old.Holder, old.Ref, old.Result, old.Error
		return nil
	})
}

// endedBefore moves a job that has just ended to its place in the history, as if it had ended at an
// earlier instant.
func (s *Store) endedBefore(j *job, at time.Time) {
	of := class{j.Queue, j.State}
	now := ending{j.ID, j.FinishedAt}
	others := slices.DeleteFunc(s.history[of], func(e ending) bool { return e == now })
	s.history[of] = withEnding(others, ending{j.ID, at})
}

// Resolve ends uncertain jobs with the outcome that a person found out.
func (s *Store) Resolve(ctx context.Context, ids []sluice.ID, outcome sluice.State, act sluice.Act) ([]error, error) {
	move, _ := sluice.Resolution(outcome)
	return s.each(ctx, ids, act, func(j *job) error {
		if move.Event == "" || j.State != sluice.StateUncertain {
			return notAllowed(move.Event, j)
		}
		if outcome == sluice.StateDead {
			j.Error = storing.ResolvedError(act)
		}
		s.tally.Moved(j.Queue, "", move.Event, 1)
		s.finish(j, move.Event, act)
		return nil
	})
}

// retakeKey gives a requeued job its key again, or returns an error if another unfinished job holds
// the key.
func (s *Store) retakeKey(j *job) error {
	if j.Key == "" {
		return nil
	}
	place := queueKey{j.Queue, j.Key}
	hold, held := s.keys[place]
	if held && hold.job != j.ID && s.holds(hold) {
		return fmt.Errorf("job %s holds the key %q: %w", hold.job, j.Key, sluice.ErrDuplicate)
	}
	if !held || hold.job != j.ID {
		s.keys[place], j.keyed = keyHold{job: j.ID}, true
	}
	return nil
}

// Reschedule changes the due time of queued jobs.
func (s *Store) Reschedule(ctx context.Context, ids []sluice.ID, dueAt time.Time, act sluice.Act) ([]error, error) {
	return s.each(ctx, ids, act, func(j *job) error {
		if j.State != sluice.StateQueued {
			return notAllowed(sluice.EventReschedule, j)
		}
		before, due := j.DueAt, dueAt
		if due.IsZero() {
			due = s.now()
		}
		if !j.ExpiresAt.IsZero() && !due.Before(j.ExpiresAt) {
			return storing.DueTooLate(dueAt, j.ExpiresAt)
		}
		j.DueAt = due
		entry := moveEntry(j, sluice.EventReschedule, j.State, act)
		entry.Before, entry.After = sluice.DueText(before), sluice.DueText(j.DueAt)
		s.add(entry)
		s.wait(j)
		s.signal(sluice.Signal{Queue: j.Queue})
		return nil
	})
}

// DeleteJobs deletes dead and cancelled jobs. It cancels jobs that wait until one of them is requeued.
func (s *Store) DeleteJobs(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.each(ctx, ids, act, func(j *job) error {
		if !j.State.Prunable() {
			return notAllowed(audit.EventDelete, j)
		}
		s.tell(j, audit.EventDelete, j.State, act)
		delete(s.jobs, j.ID)
		s.unblock(j.ID)
		return nil
	})
}

// each applies an act to jobs one by one, and skips jobs on which the same act was done before.
func (s *Store) each(ctx context.Context, ids []sluice.ID, act sluice.Act, do func(*job) error) ([]error, error) {
	return s.eachAndThen(ctx, ids, act, func() {}, do)
}

// eachAndThen is each, and calls then at the end.
func (s *Store) eachAndThen(ctx context.Context, ids []sluice.ID, act sluice.Act, then func(), do func(*job) error) ([]error, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	errs := make([]error, len(ids))
	for i, id := range ids {
		j := s.jobs[id]
		switch {
		case s.did(act, id):
		case j == nil:
			errs[i] = sluice.ErrNotFound
		default:
			errs[i] = do(j)
		}
	}
	then()
	return errs, nil
}

func notAllowed(event sluice.Event, j *job) error {
	return fmt.Errorf("%s from %s: %w", event, j.State, sluice.ErrNotAllowed)
}
