package operation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/search"
)

// Start stores an operation, which the leader of upkeep then carries out. By and Reason of the operation are the
// act's. A requeue needs a reason.
//
// Start uses Kind, Query, Backfill, DueAt, Edit, Limit, Rate, Canary, StopIfFailed, Expected and ExpectedMore of the argument.
// [Preview] counts the expected jobs; Start counts those of a backfill. Default of ID: that of the act, so that an act that is sent again starts
// nothing.
func Start(ctx context.Context, store sluice.Store, operation Operation, act sluice.Act) (Operation, error) {
	if err := act.Check(); err != nil {
		return Operation{}, err
	}
	begun := Operation{
		ID: operation.ID, Kind: operation.Kind, Query: operation.Query, DueAt: feature.Instant(operation.DueAt), Edit: operation.Edit, Limit: operation.Limit,
		Rate: operation.Rate, Canary: operation.Canary, StopIfFailed: operation.StopIfFailed,
		Expected: operation.Expected, ExpectedMore: operation.ExpectedMore, Backfill: operation.Backfill,
	}
	if err := begun.expectFires(ctx, store); err != nil {
		return Operation{}, err
	}
	if begun.ID.IsZero() {
		begun.ID = act.ID
	}
	if err := begun.begin(act); err != nil {
		return Operation{}, err
	}
	stored, err := Given(store).SaveOperation(ctx, begun, act)
	if err != nil {
		return Operation{}, fmt.Errorf("start an operation: %w", err)
	}
	return stored, nil
}

// Preview counts the jobs on which an operation would act now, among at most [search.CompareLimit], and returns some of them as
// samples. Of a query without states, it counts those in the states of the kind, as [Start] does. Of a hold, it counts jobs that nobody holds yet;
// of a backfill, the fires. It changes nothing.
func Preview(ctx context.Context, store sluice.Store, operation Operation, samples int) (search.Found, error) {
	if err := operation.expectFires(ctx, store); err != nil {
		return search.Found{}, err
	}
	if err := operation.choose(); err != nil {
		return search.Found{}, err
	}
	if operation.Kind == KindBackfill {
		return search.Found{Matched: operation.Expected}, nil
	}
	if operation.Kind == KindHold {
		return previewHold(ctx, store, operation.Query, samples)
	}
	return search.Preview(ctx, store, operation.Query, samples)
}

// previewHold leaves out jobs that are held already. A sample may be held if more than 1,000 newer jobs are.
func previewHold(ctx context.Context, store sluice.Store, q search.Query, samples int) (search.Found, error) {
	of := q
	of.Held = true
	held, err := search.Preview(ctx, store, of, 1000)
	if err != nil {
		return held, err
	}
	found, err := search.Preview(ctx, store, q, samples+len(held.Jobs))
	if err != nil {
		return found, err
	}
	isHeld := make(map[sluice.ID]bool, len(held.Jobs))
	for _, job := range held.Jobs {
		isHeld[job.ID] = true
	}
	found.Matched = max(0, found.Matched-held.Matched)
	found.States = map[sluice.State]int{sluice.StateQueued: found.Matched}
	found.Jobs = slices.DeleteFunc(found.Jobs, func(job sluice.Job) bool { return isHeld[job.ID] })
	found.Jobs = found.Jobs[:min(samples, len(found.Jobs))]
	return found, nil
}

// Read returns an operation. An unknown ID is a [sluice.ErrNotFound].
func Read(ctx context.Context, store sluice.Store, id sluice.ID) (Operation, error) {
	found, err := Given(store).Operation(ctx, id)
	if err != nil {
		return found, fmt.Errorf("operation %s: %w", id, err)
	}
	return found, nil
}

// List lists operations, the newest first.
func List(ctx context.Context, store sluice.Store, filter Filter) ([]Operation, error) {
	size, err := feature.PageSize(filter.Limit)
	if err != nil {
		return nil, err
	}
	filter.Limit = size
	return Given(store).Operations(ctx, filter)
}

// Pause pauses an operation after its present batch. If the operation does not run, the error is a
// [sluice.ErrNotAllowed].
func Pause(ctx context.Context, store sluice.Store, id sluice.ID, act sluice.Act) (Operation, error) {
	return change(ctx, store, id, act, func(o *Operation) error {
		if o.State != StateRunning {
			return fmt.Errorf("it is %s: %w", o.State, sluice.ErrNotAllowed)
		}
		o.enter(StatePaused, pausedBy(act))
		return nil
	})
}

// Resume lets a paused operation go on from its place. If the operation is not paused, the error is a
// [sluice.ErrNotAllowed].
func Resume(ctx context.Context, store sluice.Store, id sluice.ID, act sluice.Act) (Operation, error) {
	return change(ctx, store, id, act, func(o *Operation) error {
		if o.State != StatePaused {
			return fmt.Errorf("it is %s: %w", o.State, sluice.ErrNotAllowed)
		}
		o.enter(StateRunning, "")
		return nil
	})
}

// Stop ends an operation for good, after its present batch. Its effects stay. If the operation has ended, the error
// is a [sluice.ErrNotAllowed].
func Stop(ctx context.Context, store sluice.Store, id sluice.ID, act sluice.Act) (Operation, error) {
	return change(ctx, store, id, act, func(o *Operation) error {
		if o.State.Ended() {
			return fmt.Errorf("it is %s: %w", o.State, sluice.ErrNotAllowed)
		}
		o.enter(StateStopped, "stopped by "+pausedBy(act))
		return nil
	})
}

// pausedBy writes who acts, and why.
func pausedBy(act sluice.Act) string {
	if act.Reason == "" {
		return act.By
	}
	return act.By + ": " + act.Reason
}

// SetRate changes the rate of an operation. 0: as fast as upkeep can. If the operation has ended, the error is a
// [sluice.ErrNotAllowed].
func SetRate(ctx context.Context, store sluice.Store, id sluice.ID, rate sluice.Rate, act sluice.Act) (Operation, error) {
	return change(ctx, store, id, act, func(o *Operation) error {
		if o.State.Ended() {
			return fmt.Errorf("it is %s: %w", o.State, sluice.ErrNotAllowed)
		}
		o.pace(rate)
		return o.checkTerms()
	})
}

// enter gives an operation a state. One that goes on begins without tokens.
func (o *Operation) enter(state State, why string) {
	o.State, o.Why = state, why
	if state == StateRunning {
		o.course.Tokens, o.course.FilledAt = 0, o.now()
	}
}

// pace gives an operation a rate. What it has saved of the old rate is no burst of the new one.
func (o *Operation) pace(rate sluice.Rate) {
	o.Rate = rate
	o.course.Tokens, o.course.FilledAt = math.Min(o.course.Tokens, 1), o.now()
}

// change changes an operation. If somebody else changes it in the meantime, change begins again.
func change(ctx context.Context, store sluice.Store, id sluice.ID, act sluice.Act, change func(*Operation) error) (Operation, error) {
	if err := act.Check(); err != nil {
		return Operation{}, err
	}
	for {
		stored, err := Read(ctx, store, id)
		if err != nil {
			return Operation{}, err
		}
		if err := change(&stored); err != nil {
			return doneBefore(ctx, store, stored, act, fmt.Errorf("operation %s: %w", id, err))
		}
		saved, err := Given(store).SaveOperation(ctx, stored, act)
		if err == nil {
			return saved, nil
		}
		if !errors.Is(err, sluice.ErrConflict) {
			return Operation{}, fmt.Errorf("change operation %s: %w", id, err)
		}
	}
}

// doneBefore returns the operation if the act was done before and its answer was lost, else why the act is refused. The store knows its
// acts, and writes nothing over a version that no operation has.
func doneBefore(ctx context.Context, store sluice.Store, stored Operation, act sluice.Act, why error) (Operation, error) {
	stored.Version = math.MaxInt64
	saved, err := Given(store).SaveOperation(ctx, stored, act)
	if errors.Is(err, sluice.ErrConflict) {
		err = why
	}
	return saved, err
}
