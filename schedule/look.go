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
func Trigger(ctx context.Context, store sluice.Store, name string, act sluice.Act) (Fire, error) {
	if err := act.Check(); err != nil {
		return Fire{}, err
	}
	fires, err := Given(store).FireSchedule(ctx, name, nil, act)
	if err != nil {
		return Fire{}, about(name, err)
	}
	return fires[0], nil
}

// BackfillInstants lists the instants that a [Backfill] of a range fires: those from the first instant to the last one, both
// included. More than [MaxBackfill] are a [sluice.ErrInvalid].
func BackfillInstants(s Schedule, from, to time.Time) ([]time.Time, error) {
	t, err := s.timing()
	if err != nil {
		return nil, about(s.Name, err)
	}
	if from.IsZero() || to.IsZero() || to.Before(from) {
		return nil, feature.Invalid("to", "give a range: two instants, of which the first is not later")
	}
	var all []time.Time
	for at, found := t.next(from.Add(-time.Microsecond)); found && !at.After(to); at, found = t.next(at) {
		if len(all) == MaxBackfill {
			return nil, feature.Invalid("to", fmt.Sprintf("the range has more than %d fires; take a shorter one", MaxBackfill))
		}
		all = append(all, at)
	}
	return all, nil
}

// backfillBatch is how many fires one transaction makes.
const backfillBatch = 1000

// Backfill makes the jobs of all fires of a schedule in a range of time, also if the schedule is paused. A fire that has
// made its job already is a duplicate while the store has that job, so a backfill that failed can be repeated.
//
// Backfill pays no heed to unfinished jobs, except that with [QueueOne] and [QueueAll] the jobs run one at a time.
// [BackfillInstants] lists the instants before.
func Backfill(ctx context.Context, store sluice.Store, name string, from, to time.Time, act sluice.Act) ([]Fire, error) {
	if err := act.Check(); err != nil {
		return nil, err
	}
	s, err := Read(ctx, store, name)
	if err != nil {
		return nil, err
	}
	plan, err := BackfillInstants(s, from, to)
	if err != nil {
		return nil, err
	}
	var all []Fire
	for batch := range slices.Chunk(plan, backfillBatch) {
		fires, err := Given(store).FireSchedule(ctx, name, batch, each(act))
		if err != nil {
			return all, about(name, err)
		}
		all = append(all, fires...)
	}
	return all, nil
}
