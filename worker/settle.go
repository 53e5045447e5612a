package worker

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

const (
	// settleBatch is the most settlements that one call writes.
	settleBatch = 500
	// settleWait is how long the first settlement of a batch waits for others. A job settled alone costs ten
	// times as much as in a batch.
	settleWait = 2 * time.Millisecond
)

// decided is a settlement and the queue of its job.
type decided struct {
	sluice.Settlement
	servedQueue *servedQueue
}

// decide passes on a settlement and never waits: whoever calls decide must go on, to renew leases for example.
func (w *Worker) decide(d decided) {
	select {
	case w.settlements <- d:
	default: // many settlements wait for a store that does not take them
		go func() { w.settlements <- d }()
	}
}

// batch is settlements that are written together, and the queues of their jobs.
type batch struct {
	settlements []sluice.Settlement
	serving     []*servedQueue
}

func (b *batch) add(d decided) {
	b.settlements, b.serving = append(b.settlements, d.Settlement), append(b.serving, d.servedQueue)
}

// empty keeps the batch's memory, but releases the values that the settlements refer to.
func (b *batch) empty() {
	clear(b.settlements)
	b.settlements, b.serving = b.settlements[:0], b.serving[:0]
}

// settleAll writes settlements in batches, until the worker has drained and has written every decided
// settlement.
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
	w.settleBatch(ctx, b.settlements, b.serving)
	w.unsettled.Add(-int64(len(b.settlements)))
	now, later := time.Now(), false
	for i, l := range b.serving {
		w.ended(l)
		if delay := b.settlements[i].Delay; delay > 0 {
			l.dueAgain(now.Add(delay))
			later = true
		}
	}
	if later {
		w.nudge()
	}
	b.empty()
}

// dueAgain notes when a job that this worker handed back is due. No signal reports such a job, and the worker may have
// looked at the queue while the job ran.
func (l *servedQueue) dueAgain(at time.Time) {
	for {
		known := l.again.Load()
		if known != 0 && known <= at.UnixNano() || l.again.CompareAndSwap(known, at.UnixNano()) {
			return
		}
	}
}

// wakeAgain makes the queue hungry if a job that dueAgain noted is due. Otherwise wakeAgain returns the earlier of next
// and the job's due time.
func (l *servedQueue) wakeAgain(now, next time.Time) time.Time {
	known := l.again.Load()
	switch at := time.Unix(0, known); {
	case known == 0:
		return next
	case now.Before(at):
		return earlier(next, at)
	}
	if l.again.CompareAndSwap(known, 0) {
		l.hungry.Store(true)
	}
	return next
}

// ended notes that a job of a queue has ended. If the queue was at a concurrency limit, it becomes hungry
// again.
func (w *Worker) ended(l *servedQueue) {
	l.ended.Add(1)
	if l.full.CompareAndSwap(true, false) {
		l.hungry.Store(true)
		w.nudge()
	}
}

// gather waits a moment for settlements to write with the first.
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

// settleBatch writes a batch. The handlers have done their work, so the worker retries for a long time.
func (w *Worker) settleBatch(ctx context.Context, batch []sluice.Settlement, serving []*servedQueue) {
	begun := time.Now()
	for !w.away { // else each further batch would take the deadline of a call
		errs, err := w.store.Settle(ctx, batch)
		if err == nil {
			w.report(batch, serving, errs)
			return
		}
		w.away = w.drainOver() && !errors.Is(err, sluice.ErrFollower)
		w.log.Emit(event.NotSettled, "", "jobs", len(batch), "error", err)
		if w.mayGiveUp(begun, err) || errors.Is(err, context.Canceled) {
			break
		}
		waitFor(ctx.Done(), w.options.Poll)
	}
	w.givenUp.Add(int64(len(batch)))
	w.log.Emit(event.SettlementsGivenUp, "", "jobs", len(batch))
}

// maxSettleTime is how long the worker retries settlements before it gives up. By then another process that
// reaches the store has long recovered the leases.
const maxSettleTime = 5 * time.Minute

// maxFollowerTime is how long the worker retries settlements when a follower's statement fails. All other
// settlements wait meanwhile.
const maxFollowerTime = 10 * time.Second

// mayGiveUp reports whether the worker has retried settlements long enough: for maxSettleTime or maxFollowerTime, or
// until Options.Drain and Options.Abandon have passed since the drain began.
func (w *Worker) mayGiveUp(begun time.Time, err error) bool {
	most := maxSettleTime
	if errors.Is(err, sluice.ErrFollower) {
		most = maxFollowerTime
	}
	return time.Since(begun) > most || w.drainOver()
}

// drainOver reports whether the drain has taken all its time.
func (w *Worker) drainOver() bool {
	by := w.settleBy.Load()
	return by != nil && time.Now().After(*by)
}

func (w *Worker) report(batch []sluice.Settlement, serving []*servedQueue, errs []error) {
	for i, err := range errs {
		if err != nil {
			w.log.Emit(event.SettlementRefused, serving[i].queue, "job", batch[i].ID, "event", batch[i].Event, "error", err)
		}
	}
}
