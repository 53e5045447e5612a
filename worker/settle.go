package worker

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

const (
	// settleBatch is how many settlements are written together at the most.
	settleBatch = 500
	// settleWait is how long the first of a batch waits for others. Settled one by one, a job
	// costs ten times as much as in a batch.
	settleWait = 2 * time.Millisecond
)

// decided is what became of a job of a queue.
type decided struct {
	sluice.Settlement
	lane *lane
}

// batch is settlements that are written together, and the queues of their jobs.
type batch struct {
	settlements []sluice.Settlement
	lanes       []*lane
}

func (b *batch) add(d decided) {
	b.settlements, b.lanes = append(b.settlements, d.Settlement), append(b.lanes, d.lane)
}

// empty keeps the room, but nothing of what the settlements hold on to.
func (b *batch) empty() {
	clear(b.settlements)
	b.settlements, b.lanes = b.settlements[:0], b.lanes[:0]
}

// settleAll writes settlements in batches, until the worker is drained and every decided one is
// written.
func (w *Worker) settleAll(ctx context.Context, drained <-chan struct{}) {
	var b batch
	for {
		select {
		case first := <-w.settlements:
			w.settleFrom(ctx, first, &b)
		case <-drained:
			for w.unsettled.Load() > 0 {
				w.settleFrom(ctx, <-w.settlements, &b)
			}
			return
		}
	}
}

func (w *Worker) settleFrom(ctx context.Context, first decided, b *batch) {
	w.gather(first, b)
	w.settleBatch(ctx, b.settlements, b.lanes)
	w.unsettled.Add(-int64(len(b.settlements)))
	for _, l := range b.lanes {
		w.ended(l)
	}
	b.empty()
}

// ended notes that a job of a queue has ended. If no more of them could be in flight, it is looked at
// again.
func (w *Worker) ended(l *lane) {
	l.ended.Add(1)
	if l.full.CompareAndSwap(true, false) {
		l.hungry.Store(true)
		w.nudge()
	}
}

// gather waits a moment for settlements that can go with the first.
func (w *Worker) gather(first decided, b *batch) {
	b.add(first)
	timer := time.NewTimer(settleWait)
	defer timer.Stop()
	for len(b.settlements) < settleBatch {
		select {
		case next := <-w.settlements:
			b.add(next)
		case <-timer.C:
			return
		}
	}
}

// settleBatch writes a batch. What the handlers did is done, so that it tries for a long time.
func (w *Worker) settleBatch(ctx context.Context, batch []sluice.Settlement, lanes []*lane) {
	begun := time.Now()
	for {
		errs, err := w.store.Settle(ctx, batch)
		if err == nil {
			w.report(batch, lanes, errs)
			return
		}
		w.log.Tell(event.NotSettled, "", "jobs", len(batch), "error", err)
		if w.mayGiveUp(begun, err) || errors.Is(err, context.Canceled) {
			w.givenUp.Add(int64(len(batch)))
			w.log.Tell(event.SettlementsGivenUp, "", "jobs", len(batch))
			return
		}
		waitFor(ctx.Done(), w.options.Poll)
	}
}

// maxSettleTime is how long settlements are tried before they are given up. By then the leases
// have long been recovered by somebody who can reach the store.
const maxSettleTime = 5 * time.Minute

// maxFollowerTime is how long settlements are tried that a follower's statement fails: all others wait behind them.
const maxFollowerTime = 10 * time.Second

// mayGiveUp reports whether settlements were tried for long enough: five minutes, and not longer than
// the drain.
func (w *Worker) mayGiveUp(begun time.Time, err error) bool {
	most := maxSettleTime
	if errors.Is(err, sluice.ErrFollower) {
		most = maxFollowerTime
	}
	by := w.settleBy.Load()
	return time.Since(begun) > most || by != 0 && time.Now().UnixNano() > by
}

func (w *Worker) report(batch []sluice.Settlement, lanes []*lane, errs []error) {
	for i, err := range errs {
		if err != nil {
			w.log.Tell(event.SettlementRefused, lanes[i].queue, "job", batch[i].ID, "event", batch[i].Event, "error", err)
		}
	}
}
