package operation

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/search"
)

// The bounds of one step of an operation.
const (
	batchSize = 500 // the most jobs that it acts on
	maxPages  = 10  // the most pages that it searches for them
	// restTime is how long upkeep leaves an operation alone while the operation waits for watched jobs.
	restTime = time.Second
	// paceSlice is how much of its rate an operation saves up for one batch, so that a slow rate needs fewer
	// batches than jobs.
	paceSlice = 500 * time.Millisecond
	// goneAfter is when the process that carried out a batch has certainly gone: longer than any call may take.
	goneAfter = 30 * time.Second
)

// CarryOut takes the next step of an operation in the name of a process. It acts on a batch of jobs, searches for
// matching jobs, or checks the watched jobs. Upkeep calls it.
//
// It returns the changed operation, and how long the caller can leave the operation alone; 0: there is more to do.
// A [sluice.ErrConflict] says that another process was quicker: read the operation again.
//
// Several processes may carry out the same operation, and each may end at any instant. CarryOut stores a batch
// before it acts, and every process acts under the same act ID. So nothing is repeated, nothing is skipped, and the
// counts are exact.
//
// The checker compares the payloads of a backfill with the payload_schema of their queue; nil: only workers do.
func CarryOut(ctx context.Context, store sluice.Store, o Operation, by string, checker sluice.PayloadChecker) (Operation, time.Duration, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return o, restTime, err
	}
	o.carrier, o.checker = by, checker
	switch {
	case len(o.course.Under) > 0 && o.State == StateRunning:
		return finishBatch(ctx, store, o)
	case len(o.course.Under) > 0:
		return lookAtBatch(ctx, store, o)
	case o.State != StateRunning:
		return o, time.Minute, nil
	}
	if o.Kind == KindBackfill {
		return backfill(ctx, store, o)
	}
	before := o
	if err := watch(ctx, store, &o); err != nil {
		return before, restTime, err
	}
	if o.judge(); o.State.Ended() {
		return saveStep(ctx, store, o, 0)
	}
	if o.OnProbation() && o.watched() >= o.Canary {
		return saveIfChanged(ctx, store, before, o, restTime)
	}
	if err := find(ctx, store, &o); err != nil {
		return before, restTime, err
	}
	wait := o.take()
	if len(o.course.Under) == 0 {
		return saveIfChanged(ctx, store, before, o, wait)
	}
	o, _, err := saveStep(ctx, store, o, 0)
	if err != nil {
		return before, restTime, err
	}
	return finishBatch(ctx, store, o)
}

// saveStep stores a step, and returns how long to wait.
func saveStep(ctx context.Context, store sluice.Store, o Operation, wait time.Duration) (Operation, time.Duration, error) {
	saved, err := Given(store).SaveOperation(ctx, o, o.step())
	if err != nil {
		return o, restTime, fmt.Errorf("save operation %s: %w", o.ID, err)
	}
	saved.lookedAt, saved.carrier = o.lookedAt, o.carrier
	return saved, wait, nil
}

// step is the act of a step: By is the process that carries the operation out.
func (o Operation) step() sluice.Act {
	return sluice.Act{By: o.carrier, Reason: o.Why, ID: sluice.NewID()}
}

// saveIfChanged stores the findings of a step, if there are any.
func saveIfChanged(ctx context.Context, store sluice.Store, before, o Operation, wait time.Duration) (Operation, time.Duration, error) {
	same := before.State == o.State && before.course.Place == o.course.Place && len(before.course.Found) == len(o.course.Found) &&
		before.course.Proved == o.course.Proved && before.WatchedEnded == o.WatchedEnded && before.Watching == o.Watching
	if same {
		return o, wait, nil
	}
	return saveStep(ctx, store, o, wait)
}

// find searches for matching jobs, unless some are left from the last search. At a slow rate it finds few at once,
// so that they have not changed before their turn.
func find(ctx context.Context, store sluice.Store, o *Operation) error {
	if len(o.course.Found) > 0 {
		return nil
	}
	page := batchSize
	if !o.Rate.IsZero() {
		page = int(math.Min(math.Max(2*o.Rate.PerSecond(), 20), batchSize))
	}
	want := page
	for n := 0; n < maxPages && len(o.course.Found) < want && !o.course.Place.End && !o.full(); n++ {
		read, err := search.ReadPage(ctx, store, o.Query, o.course.Place, page)
		if errors.Is(err, sluice.ErrInvalid) && o.course.Place.Cursor != "" { // somebody moved the jobs to another kind of store
			o.course.Place.Cursor, o.AtLeast = "", true
			continue
		}
		if err != nil {
			return fmt.Errorf("look for jobs of operation %s: %w", o.ID, err)
		}
		ids, err := o.left(ctx, store, read.Jobs)
		if err != nil {
			return fmt.Errorf("look for jobs of operation %s: %w", o.ID, err)
		}
		o.course.Found = append(o.course.Found, ids...)
		if o.course.Place = read.Next; read.Compared > 0 && len(read.Jobs) == 0 {
			page = batchSize // few match
		}
	}
	return nil
}

// left lists the jobs of a page on which something is left to do: jobs that are held already would use up the limit of an
// operation that holds.
func (o *Operation) left(ctx context.Context, store sluice.Store, jobs []sluice.Job) (ids []sluice.ID, err error) {
	for _, job := range jobs {
		ids = append(ids, job.ID)
	}
	if o.Kind != KindHold {
		return ids, nil
	}
	return hold.NotHeld(ctx, store, ids)
}

// full reports whether the operation has taken as many jobs as Limit allows.
func (o *Operation) full() bool { return o.Limit > 0 && o.course.Taken >= o.Limit }

// take chooses the next batch, by the rate, the canary and the limit. If there is no batch, take returns how long
// to wait, or ends the operation.
func (o *Operation) take() (wait time.Duration) {
	n := min(len(o.course.Found), batchSize)
	if o.Limit > 0 {
		n = min(n, o.Limit-o.course.Taken)
	}
	if o.OnProbation() {
		n = min(n, o.Canary-o.watched())
	}
	if n == 0 {
		return o.idle()
	}
	if !o.Rate.IsZero() {
		least := min(n, max(1, int(o.Rate.PerSecond()*paceSlice.Seconds())))
		if n = min(n, o.fill()); n < least {
			return time.Duration((float64(least) - o.course.Tokens) / o.Rate.PerSecond() * float64(time.Second))
		}
		o.course.Tokens -= float64(n)
	}
	o.course.Batch++
	o.course.Taken += n
	o.course.Under, o.course.Found = o.course.Found[:n:n], o.course.Found[n:]
	return 0
}

// fill adds the tokens since the last look, at most 1 s of them, so that no burst follows a time without upkeep.
func (o *Operation) fill() int {
	now := o.now()
	earned := now.Sub(o.course.FilledAt).Seconds() * o.Rate.PerSecond()
	o.course.Tokens = math.Min(o.course.Tokens+math.Max(earned, 0), math.Max(o.Rate.PerSecond(), 1))
	o.course.FilledAt = feature.Instant(now)
	return int(o.course.Tokens + 1e-9)
}

// idle ends the operation if nothing is left to do.
func (o *Operation) idle() (wait time.Duration) {
	if !o.full() && !o.course.Place.End {
		return 0 // there is more to look at
	}
	if o.OnProbation() && len(o.course.Watched) > 0 {
		return restTime // fewer than the canary; their ends still count
	}
	o.State = StateDone
	o.course.Found, o.course.Watched, o.Watching = nil, nil, 0
	return 0
}

// finishBatch acts on the jobs of the present batch, and stores the outcome.
func finishBatch(ctx context.Context, store sluice.Store, o Operation) (Operation, time.Duration, error) {
	if o.Kind == KindBackfill {
		return fireBatch(ctx, store, o)
	}
	errs, err := actOnBatch(ctx, store, o)
	if errors.Is(err, sluice.ErrInvalid) {
		o.State, o.Why = StateFailed, sluice.Brief(err.Error())
		o.course.Under = nil
		return saveStep(ctx, store, o, 0)
	}
	if err != nil {
		return o, restTime, fmt.Errorf("batch %d of operation %s: %w", o.course.Batch, o.ID, err)
	}
	under := o.course.Under
	return record(ctx, store, o, func(o *Operation) {
		for i, id := range under {
			o.count(id, errs[i])
		}
	})
}

// actOnBatch acts on the present batch. It tries refused jobs once more: another process may have acted on them at
// the same time, under the same ID. Then the second answer is the result of that act.
func actOnBatch(ctx context.Context, store sluice.Store, o Operation) ([]error, error) {
	act := o.actOfBatch()
	do := func() ([]error, error) {
		switch o.Kind {
		case KindRequeue:
			return store.Requeue(ctx, o.course.Under, act)
		case KindCancel:
			return store.Cancel(ctx, o.course.Under, act)
		case KindReschedule:
			return store.Reschedule(ctx, o.course.Under, o.DueAt, act)
		case KindDelete:
			return store.DeleteJobs(ctx, o.course.Under, act)
		case KindHold:
			return hold.Given(store).Hold(ctx, o.course.Under, act)
		case KindRelease:
			return hold.Given(store).Release(ctx, o.course.Under, act)
		case KindEdit:
			return editBatch(ctx, store, o, act)
		}
		return nil, feature.Invalid("kind", fmt.Sprintf("%.40q is not known to this program; let a newer one do upkeep", o.Kind))
	}
	errs, err := do()
	if err != nil || !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs, err
	}
	return do()
}

// actOfBatch returns the act of the present batch, the same in every process.
func (o Operation) actOfBatch() sluice.Act {
	return sluice.Act{By: o.By, Reason: fmt.Sprintf("%s (operation %s)", o.Reason, o.ID), ID: o.batchAct()}
}

// batchAct returns the act ID of the present batch, the same in every process.
func (o Operation) batchAct() sluice.ID {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(o.ID[:], uint64(o.course.Batch)))
	id := sluice.ID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8 (RFC 9562)
	return id
}

// watchSample is how many jobs an operation watches at once, after the canary.
const watchSample = 50

// count counts the outcome of one job.
func (o *Operation) count(id sluice.ID, err error) {
	switch {
	case err == nil:
		o.Done++
		if o.StopIfFailed > 0 && (o.OnProbation() || len(o.course.Watched) < watchSample) {
			o.course.Watched = append(o.course.Watched, id)
			o.Watching = len(o.course.Watched)
		}
	case errors.Is(err, sluice.ErrNotAllowed), errors.Is(err, sluice.ErrNotFound):
		o.Skipped++
	default:
		o.Failed++
	}
}

// record stores the outcome of the present batch, even if a person changed the operation in the meantime.
func record(ctx context.Context, store sluice.Store, o Operation, add func(*Operation)) (Operation, time.Duration, error) {
	batch, lookedAt, carrier := o.course.Batch, o.lookedAt, o.carrier
	for {
		if len(o.course.Under) > 0 {
			add(&o)
			o.course.Under = nil
		}
		saved, err := Given(store).SaveOperation(ctx, o, o.step())
		if err == nil {
			saved.lookedAt, saved.carrier = lookedAt, carrier
			return saved, 0, nil
		}
		if !errors.Is(err, sluice.ErrConflict) {
			return o, restTime, fmt.Errorf("save operation %s: %w", o.ID, err)
		}
		if o, err = Given(store).Operation(ctx, o.ID); err != nil {
			return o, restTime, fmt.Errorf("batch %d of an operation: %w", batch, err)
		}
		o.carrier = carrier
		if o.course.Batch != batch || len(o.course.Under) == 0 {
			if o.State != StateRunning && o.course.Batch == batch && !o.AtLeast {
				o.AtLeast = true // the process that looked at the batch may have seen half of it
				continue
			}
			return o, 0, nil // another process has stored it
		}
	}
}

// lookAtBatch finds the outcome of the last batch of a paused or stopped operation whose process is gone. It does
// not act, because a person has ended or paused that. Jobs without an act wait until the operation goes on.
func lookAtBatch(ctx context.Context, store sluice.Store, o Operation) (Operation, time.Duration, error) {
	if left := goneAfter - o.now().Sub(o.UpdatedAt); left > 0 {
		return o, left, nil
	}
	if o.Kind == KindBackfill {
		return lookAtFires(ctx, store, o)
	}
	act := o.batchAct()
	var done, rest []sluice.ID
	for _, id := range o.course.Under {
		told, err := store.Audit(ctx, sluice.AuditFilter{JobID: id, Limit: 100})
		if err != nil {
			return o, restTime, fmt.Errorf("batch %d of operation %s: %w", o.course.Batch, o.ID, err)
		}
		if slices.ContainsFunc(told, func(e sluice.AuditEntry) bool { return e.ActID == act }) {
			done = append(done, id)
		} else {
			rest = append(rest, id)
		}
	}
	return record(ctx, store, o, func(o *Operation) {
		for _, id := range done {
			o.count(id, nil)
		}
		o.course.Found = append(rest, o.course.Found...)
		o.course.Taken -= len(rest)
	})
}
