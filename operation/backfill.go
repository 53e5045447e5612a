package operation

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/schedule"
)

// fullTime is how long a backfill waits while the queue is full.
const fullTime = 250 * time.Millisecond

// instantID stores an instant in place of the ID of a job.
func instantID(at time.Time) (id sluice.ID) {
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMicro()))
	return id
}

// instantsOf reads what instantID stores.
func instantsOf(ids idList) []time.Time {
	all := make([]time.Time, len(ids))
	for i, id := range ids {
		all[i] = time.UnixMicro(int64(binary.BigEndian.Uint64(id[:8]))).UTC()
	}
	return all
}

// expectFires counts the fires of a new backfill, and checks its range.
func (o *Operation) expectFires(ctx context.Context, store sluice.Store) error {
	if o.Backfill == nil {
		return nil
	}
	of := Backfill{o.Backfill.Schedule, feature.Instant(o.Backfill.From), feature.Instant(o.Backfill.To)}
	s, err := schedule.Read(ctx, store, of.Schedule)
	if err != nil {
		return err
	}
	all, err := schedule.Between(s, of.From, of.To, schedule.MaxBackfill)
	if err != nil {
		return err
	}
	o.Backfill, o.Query.Queue, o.Expected, o.ExpectedMore = &of, s.Queue, len(all), false
	return nil
}

// backfill takes the next step of a backfill.
func backfill(ctx context.Context, store sluice.Store, o Operation) (Operation, time.Duration, error) {
	before := o
	err := findFires(ctx, store, &o)
	if errors.Is(err, sluice.ErrNotFound) || errors.Is(err, sluice.ErrInvalid) {
		o.State, o.Why = StateFailed, sluice.Brief(err.Error())
		return saveStep(ctx, store, o, 0)
	}
	if err != nil {
		return before, restTime, fmt.Errorf("operation %s: %w", o.ID, err)
	}
	wait := o.take()
	if len(o.course.Under) == 0 {
		return saveIfChanged(ctx, store, before, o, wait)
	}
	if o, _, err = saveStep(ctx, store, o, 0); err != nil {
		return before, restTime, err
	}
	return fireBatch(ctx, store, o)
}

// findFires searches for the next instants, unless some are left.
func findFires(ctx context.Context, store sluice.Store, o *Operation) error {
	if len(o.course.Found) > 0 || o.course.Place.End || o.full() {
		return nil
	}
	s, err := schedule.Read(ctx, store, o.Backfill.Schedule)
	if err != nil {
		return err
	}
	from := o.Backfill.From
	if through := o.course.Through; !through.IsZero() {
		from = through.Add(time.Microsecond)
	}
	if from.After(o.Backfill.To) {
		o.course.Place.End = true
		return nil
	}
	next, err := schedule.Between(s, from, o.Backfill.To, -batchSize)
	if err != nil {
		return err
	}
	for _, at := range next {
		o.course.Found, o.course.Through = append(o.course.Found, instantID(at)), at
	}
	o.course.Place.End = len(next) < batchSize
	return nil
}

// fireBatch makes the jobs of the present batch, and stores the outcome. Fires that a full queue refuses come again.
func fireBatch(ctx context.Context, store sluice.Store, o Operation) (Operation, time.Duration, error) {
	under := o.course.Under
	fires, err := schedule.Given(store).FireSchedule(ctx, o.Backfill.Schedule, instantsOf(under), o.actOfBatch(), o.checker)
	if errors.Is(err, sluice.ErrNotFound) || errors.Is(err, sluice.ErrInvalid) {
		o.State, o.Why, o.course.Under = StateFailed, sluice.Brief(fmt.Sprintf("schedule %q: %v", o.Backfill.Schedule, err)), nil
		return saveStep(ctx, store, o, 0)
	}
	if err != nil {
		return o, restTime, fmt.Errorf("batch %d of operation %s: %w", o.course.Batch, o.ID, err)
	}
	var refused idList
	for i, f := range fires {
		if f.Result == schedule.Refused {
			refused = append(refused, under[i])
		}
	}
	next, wait, err := record(ctx, store, o, func(o *Operation) {
		o.countFires(fires)
		o.course.Found, o.course.Taken = append(slices.Clone(refused), o.course.Found...), o.course.Taken-len(refused)
	})
	if err == nil && len(refused) > 0 {
		wait = fullTime
	}
	return next, wait, err
}

// countFires counts the outcome of fires.
func (o *Operation) countFires(fires []schedule.Fire) {
	for _, f := range fires {
		switch f.Result {
		case schedule.Enqueued:
			o.Done++
		case schedule.Refused:
		default:
			o.Skipped++
		}
	}
}

// lookAtFires finds the outcome of the last batch of a paused or stopped backfill whose process is gone. A batch that
// made no jobs waits until the operation goes on.
func lookAtFires(ctx context.Context, store sluice.Store, o Operation) (Operation, time.Duration, error) {
	told, err := store.Audit(ctx, sluice.AuditFilter{Object: audit.ObjectSchedule, Name: o.Backfill.Schedule, Limit: 100})
	if err != nil {
		return o, restTime, fmt.Errorf("batch %d of operation %s: %w", o.course.Batch, o.ID, err)
	}
	act, under := o.batchAct(), o.course.Under
	place := slices.IndexFunc(told, func(e sluice.AuditEntry) bool { return e.ActID == act })
	if place < 0 {
		return record(ctx, store, o, func(o *Operation) {
			o.course.Found, o.course.Taken = append(slices.Clone(under), o.course.Found...), o.course.Taken-len(under)
		})
	}
	fires := make([]schedule.Fire, len(under))
	for i, at := range instantsOf(under) {
		fires[i] = schedule.Fire{At: at, Result: schedule.Enqueued}
	}
	fires, err = schedule.Told(fires, told[place].After)
	if err != nil {
		return o, restTime, fmt.Errorf("batch %d of operation %s: %w", o.course.Batch, o.ID, err)
	}
	var refused idList
	for i, f := range fires {
		if f.Result == schedule.Refused {
			refused = append(refused, under[i])
		}
	}
	return record(ctx, store, o, func(o *Operation) {
		o.countFires(fires)
		o.course.Found, o.course.Taken = append(refused, o.course.Found...), o.course.Taken-len(refused)
	})
}
