package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Read returns a schedule. An unknown name is a [sluice.ErrNotFound].
func Read(ctx context.Context, store sluice.Store, name string) (Schedule, error) {
	s, err := Given(store).Schedule(ctx, name)
	return s, about(name, err)
}

// List lists schedules by name.
func List(ctx context.Context, store sluice.Store, filter Filter) ([]Schedule, error) {
	size, err := feature.PageSize(filter.Limit)
	if err != nil {
		return nil, err
	}
	filter.Limit = size
	return Given(store).Schedules(ctx, filter)
}

// Results returns the last fires of a schedule with the present states of their jobs, the newest first. It reads each job.
func Results(ctx context.Context, store sluice.Store, s Schedule) ([]Fire, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return nil, err
	}
	fires := slices.Clone(s.Progress.Recent)
	slices.Reverse(fires)
	for i := range fires {
		if fires[i].Job.IsZero() {
			continue
		}
		job, err := store.Job(ctx, fires[i].Job)
		if errors.Is(err, sluice.ErrNotFound) {
			continue // the history of its queue is shorter; the schedule knows the last state
		}
		if err != nil {
			return nil, err
		}
		fires[i].State = job.State
	}
	return fires, nil
}

// Trigger fires a schedule now, also if it is paused or an earlier job is unfinished. It changes nothing of the next fires.
//
// A payload that breaks a rule of the queue is a [sluice.ErrInvalid]. The checker compares it with the payload_schema; package
// schema has one. Nil: only workers do.
func Trigger(ctx context.Context, store sluice.Store, name string, act sluice.Act, checker sluice.PayloadChecker) (Fire, error) {
	fires, err := FireFor(ctx, store, name, nil, act, checker)
	if err != nil {
		return Fire{}, err
	}
	return fires[0], nil
}

// FireFor makes the jobs of a schedule for instants, in one transaction. For an instant whose job is there, or for which a
// full queue has no room, the result says so. Without instants, it is [Trigger]. The checker is that of Trigger.
func FireFor(ctx context.Context, store sluice.Store, name string, instants []time.Time, act sluice.Act, checker sluice.PayloadChecker) ([]Fire, error) {
	if err := act.Check(); err != nil {
		return nil, err
	}
	for _, at := range instants {
		if err := feature.CheckInstant("at", at); err != nil || at.IsZero() {
			return nil, errors.Join(err, feature.Invalid("at", "each must be an instant"))
		}
	}
	fires, err := Given(store).FireSchedule(ctx, name, instants, act, checker)
	return fires, about(name, err)
}

// Between lists the fires of a schedule from an instant to another, both included, whether the schedule is paused or not.
// More than limit are a [sluice.ErrInvalid]. A negative limit lists the first so many.
func Between(s Schedule, from, to time.Time, limit int) ([]time.Time, error) {
	t, err := s.timing()
	if err != nil {
		return nil, about(s.Name, err)
	}
	if from.IsZero() || to.IsZero() || to.Before(from) {
		return nil, feature.Invalid("to", "the range must have two instants, of which the first is not later")
	}
	var all []time.Time
	for at, found := t.next(from.Add(-time.Microsecond)); found && !at.After(to); at, found = t.next(at) {
		switch {
		case len(all) == limit:
			return nil, feature.Invalid("to", fmt.Sprintf("the range has more than %d fires; take a shorter one", limit))
		case len(all) == -limit:
			return all, nil
		}
		all = append(all, at)
	}
	return all, nil
}
