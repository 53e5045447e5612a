package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/internal/event"
)

const (
	// advanceBatch is how many changes of batches one transaction adds up.
	advanceBatch = 10_000
	// advanceInterval is the time between two looks for changed batches, and advanceIdle while every batch is complete.
	advanceInterval = 200 * time.Millisecond
	advanceIdle     = time.Second
	// advanceShare limits the looks to 1/advanceShare of the time, and catchUpShare those that leave changes: they would
	// else take a twentieth of the processor from the jobs themselves.
	advanceShare, catchUpShare = 20, 5
	// keepBatches is how long a complete batch is kept. forgetInterval is how often upkeep looks for older ones.
	keepBatches    = 30 * 24 * time.Hour
	forgetInterval = 10 * time.Minute
	forgetBatch    = 1000
)

// advanceBeside advances batches outside the rounds for as long as this upkeep leads. If two upkeeps believe that they lead,
// the store lets each callback happen once.
func (u *Upkeep) advanceBeside(ctx context.Context, leads bool) {
	a := &u.advancing
	switch {
	case leads && a.stop == nil:
		ctx, stop := context.WithCancel(ctx)
		a.stop = stop
		a.all.Go(func() { u.advanceUntil(ctx) })
	case !leads:
		a.rest()
	}
}

// advanceUntil advances batches until ctx ends, and forgets old ones.
func (u *Upkeep) advanceUntil(ctx context.Context) {
	var forgotten time.Time
	for ctx.Err() == nil {
		begun := time.Now()
		advanced, err := u.advance(ctx)
		if err == nil && time.Since(forgotten) >= forgetInterval {
			forgotten = begun
			err = u.forgetBatches(ctx)
		}
		wait := advanceIdle
		if err != nil {
			u.failed(ctx, "advance batches", err)
		} else if advanced.Open {
			wait = max(advanceInterval, (advanceShare-1)*time.Since(begun))
		}
		if advanced.Changes == advanceBatch || advanced.Callbacks > 0 { // there may be more, such as a batch around those
			wait = (catchUpShare - 1) * time.Since(begun)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// advance advances batches once. A store without batches has none.
func (u *Upkeep) advance(ctx context.Context) (batch.Advanced, error) {
	advanced, err := batch.Given(u.store).AdvanceBatches(ctx, advanceBatch)
	if errors.Is(err, sluice.ErrNotFound) {
		return batch.Advanced{}, nil
	}
	if err != nil {
		return advanced, fmt.Errorf("advance batches: %w", err)
	}
	if advanced.Callbacks > 0 {
		u.log.Emit(event.BatchesAdvanced, "", "jobs", advanced.Callbacks)
	}
	return advanced, nil
}

// advanceAll advances batches until nothing has changed; with all, it forgets old ones too.
func (u *Upkeep) advanceAll(ctx context.Context, all bool, done *Done) error {
	for {
		advanced, err := u.advance(ctx)
		done.Called += advanced.Callbacks
		if err != nil {
			return err
		}
		if advanced.Changes == 0 {
			break
		}
	}
	if !all {
		return nil
	}
	return u.forgetBatches(ctx)
}

// forgetBatches deletes batches that were complete long ago.
func (u *Upkeep) forgetBatches(ctx context.Context) error {
	for {
		gone, err := batch.Given(u.store).ForgetBatches(ctx, keepBatches, forgetBatch)
		if errors.Is(err, sluice.ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("forget batches: %w", err)
		}
		if gone < forgetBatch {
			return nil
		}
	}
}
