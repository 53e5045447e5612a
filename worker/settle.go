package worker

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-queue/sluice"
)

const (
	// settleBatch is how many settlements are written together at the most.
	settleBatch = 500
	// settleWait is how long the first of a batch waits for others. Settled one by one, a job
	// costs ten times as much as in a batch.
	settleWait = 2 * time.Millisecond
)

// settleAll writes settlements in batches, until the worker is drained and every decided one is
// written.
func (w *Worker) settleAll(ctx context.Context, drained <-chan struct{}) {
	batch := make([]sluice.Settlement, 0, settleBatch)
	for {
		select {
		case first := <-w.settlements:
			w.settleFrom(ctx, append(batch, first))
		case <-drained:
			for w.unsettled.Load() > 0 {
				w.settleFrom(ctx, append(batch, <-w.settlements))
			}
			return
		}
	}
}

func (w *Worker) settleFrom(ctx context.Context, batch []sluice.Settlement) {
	batch = w.gather(batch)
	w.settleBatch(ctx, batch)
	w.unsettled.Add(-int64(len(batch)))
	w.settled.Add(int64(len(batch)))
	for _, l := range w.lanes {
		if l.full.CompareAndSwap(true, false) {
			l.hungry.Store(true)
			w.nudge()
		}
	}
	clear(batch) // what they hold on to is not needed any more
}

// gather waits a moment for settlements that can go with the first.
func (w *Worker) gather(batch []sluice.Settlement) []sluice.Settlement {
	timer := time.NewTimer(settleWait)
	defer timer.Stop()
	for len(batch) < settleBatch {
		select {
		case next := <-w.settlements:
			batch = append(batch, next)
		case <-timer.C:
			return batch
		}
	}
	return batch
}

// settleBatch writes a batch. What the handlers did is done, so that it tries for a long time.
func (w *Worker) settleBatch(ctx context.Context, batch []sluice.Settlement) {
	begun := time.Now()
	for {
		errs, err := w.store.Settle(ctx, batch)
		if err == nil {
			w.report(batch, errs)
			return
		}
		w.options.Logger.Error("settlements not written", "jobs", len(batch), "error", err)
		if w.mayGiveUp(begun) || errors.Is(err, context.Canceled) {
			w.givenUp.Add(int64(len(batch)))
			w.options.Logger.Error("settlements given up; the jobs will be handed out again", "jobs", len(batch))
			return
		}
		waitFor(ctx.Done(), w.options.Poll)
	}
}

// maxSettleTime is how long settlements are tried before they are given up. By then the leases
// have long been recovered by somebody who can reach the store.
const maxSettleTime = 5 * time.Minute

// mayGiveUp reports whether settlements were tried for long enough: five minutes, and not longer than
// the drain.
func (w *Worker) mayGiveUp(begun time.Time) bool {
	by := w.settleBy.Load()
	return time.Since(begun) > maxSettleTime || by != 0 && time.Now().UnixNano() > by
}

func (w *Worker) report(batch []sluice.Settlement, errs []error) {
	for i, err := range errs {
		if err != nil {
			w.options.Logger.Warn("settlement refused", "job", batch[i].ID, "event", batch[i].Event, "holder", w.holder.ID, "error", err)
		}
	}
}
