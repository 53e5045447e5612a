package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/obey"
	"github.com/sluice-queue/sluice/presence"
)

// Once runs the due jobs of the worker's queues one after the other, until none is left that may start, and returns how
// many handlers it called. It serves the queues in the order of registration, and the jobs of a queue strictly by
// priority and due time: the setting ageing does not apply. It also runs jobs that the handlers enqueue. Use Once in
// tests and in programs that a scheduler starts.
//
// When ctx ends, Once begins no further job; the running handler may go on for [Options].Drain. An unreachable store is
// an error; jobs that have run by then stay settled. A worker does Run or Once at a time, and Once any number of times.
// Without handlers, Once does nothing. If somebody told the process to quiesce or to stop, Once returns a
// [presence.StoppedError].
func (w *Worker) Once(ctx context.Context) (ran int, err error) {
	if len(w.served()) == 0 {
		return 0, sluice.CheckGiven("store", w.store)
	}
	ctx, stopped := w.ear.Obeying(ctx)
	defer stopped(nil)
	if err := w.begin(ctx, func(error) {}); err != nil {
		return 0, err
	}
	w.settings.Forget() // the settings may have changed since an earlier call
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	helping, stopHelping := context.WithCancel(work)
	var helpers sync.WaitGroup
	helpers.Go(func() { w.keep(helping) })
	helpers.Go(func() { w.tellStore(helping) })
	defer func() {
		w.reportAllBegun(work)
		stopHelping()
		helpers.Wait()
		if leaveErr := presence.Given(w.store).Deregister(work, w.holder.ID); leaveErr != nil {
			w.log.Emit(event.NotForgotten, "", "error", leaveErr)
		}
		w.log.Flush()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ran = false
	}()
	for more := true; more; {
		more = false
		for _, l := range w.served() {
			n, err := w.drainQueue(ctx, work, l)
			ran += n
			if err != nil || ctx.Err() != nil {
				return ran, cmp.Or(err, obey.Stopped(ctx))
			}
			more = more || n > 0
		}
	}
	return ran, nil
}

// drainQueue runs the jobs of a queue until none is due.
func (w *Worker) drainQueue(ctx, work context.Context, l *servedQueue) (ran int, err error) {
	for ctx.Err() == nil {
		got, unseen, err := w.claimNext(ctx, work, l)
		ran += got
		if err != nil || got == 0 && unseen == 0 {
			return ran, err
		}
		if got == 0 {
			select {
			case <-ctx.Done():
			case <-time.After(unseen):
			}
		}
	}
	return ran, nil
}

// unseenWait is how long Once waits for what a claim has left out. A store remembers how far it has emptied a queue, and
// begins there again for a moment.
const unseenWait = 100 * time.Millisecond

// unseen returns when a claim without jobs is worth a repetition, because it has not looked at all jobs. 0: it has.
func unseen(claimed sluice.Claimed) time.Duration {
	if claimed.Unheard || !claimed.Limited && !claimed.Full && claimed.NextDue > 0 && claimed.NextDue <= unseenWait {
		return max(claimed.NextDue, minWait)
	}
	return 0
}

// claimNext claims one job, or the jobs of one call, and runs them to their end. See [unseen].
func (w *Worker) claimNext(ctx, work context.Context, l *servedQueue) (got int, again time.Duration, err error) {
	queue, err := w.settings.Queue(ctx, l.queue)
	if err != nil {
		return 0, 0, fmt.Errorf("worker: settings of queue %q: %w", l.queue, err)
	}
	request := sluice.ClaimRequest{
		Queue: l.queue, Limit: l.atOnce(), Holder: w.holder.ID, Lease: queue.Settings.Lease, Token: sluice.NewToken(),
		ReportsBegun: true, Begun: w.begun.Report(l.queue), // no ageing: nobody starves in a run that ends with the last job
	}
	if !w.ear.Begin() {
		return 0, 0, w.ear.Refusal()
	}
	defer w.ear.End()
	asked := time.Now()
	claimed, err := w.store.Claim(work, request)
	if err != nil {
		return 0, 0, fmt.Errorf("worker: claim from queue %q: %w", l.queue, err)
	}
	w.paced(l, queue.Settings, request, claimed)
	if len(claimed.Jobs) == 0 {
		return 0, unseen(claimed), nil
	}
	w.logClaimed(l, claimed.Jobs)
	runs := newRuns(w, work, l, claimed.Jobs, &queue, asked)
	w.mu.Lock()
	_, sooner := w.register(l, runs) // runs one after the other: there is no older one
	w.mu.Unlock()
	if sooner {
		w.keepSooner()
	}
	return len(runs), 0, w.runOnce(ctx, work, l, runs)
}

// atOnce returns how many jobs one call of the handler gets.
func (l *servedQueue) atOnce() int {
	if l.many == nil {
		return 1
	}
	return l.many.options.Size
}

// runOnce calls the handler once and writes the outcomes. A handler that ignores the end of its context is left behind.
func (w *Worker) runOnce(ctx, work context.Context, l *servedQueue, runs []*run) (err error) {
	ended := make(chan struct{})
	go func() { // a goroutine of its own, because a handler may end its goroutine
		defer close(ended)
		if l.many == nil {
			runs[0].run()
			return
		}
		w.runMany(work, l, runs)
	}()
	var drain, abandon <-chan time.Time
	stopped := ctx.Done()
	for {
		select {
		case d := <-w.settlements:
			if err = errors.Join(err, w.write(work, d)); w.leftBehind(runs) {
				return err
			}
		case <-ended:
			for w.unsettled.Load() > 0 {
				err = errors.Join(err, w.write(work, <-w.settlements))
			}
			return err
		case <-stopped:
			stopped, drain = nil, time.After(w.options.Drain)
		case <-drain:
			for _, r := range runs {
				r.cancel(ErrShutdown)
			}
			drain, abandon = nil, time.After(w.options.Abandon)
		case <-abandon:
			return errors.Join(ErrDrainTimeout, err, w.giveUpAll(work, runs))
		}
	}
}

// giveUpAll hands back the jobs of a call that ignores the end of its context, and writes what is decided about the others.
func (w *Worker) giveUpAll(work context.Context, runs []*run) error {
	var all batch
	for _, r := range runs {
		if d, is := w.giveUp(r); is {
			all.add(d)
		}
	}
	for w.unsettled.Load() > int64(len(all.settlements)) {
		all.add(<-w.settlements)
	}
	return w.writeAll(work, all)
}

// leftBehind reports whether the outcomes of all runs of a call are written, and its handler ignores the end of its context.
// Any other handler is waited for: it may go on once its jobs are settled, and so may OnFailure.
func (w *Worker) leftBehind(runs []*run) bool {
	ignored := false
	for _, r := range runs {
		if !r.settled.Load() {
			return false
		}
		ignored = ignored || r.abandoned.Load()
	}
	return ignored && w.unsettled.Load() == 0
}

// write writes one settlement.
func (w *Worker) write(work context.Context, d decided) error {
	return w.writeAll(work, batch{[]sluice.Settlement{d.Settlement}, []*servedQueue{d.servedQueue}})
}

// writeAll writes settlements by one call.
func (w *Worker) writeAll(work context.Context, all batch) error {
	if len(all.settlements) == 0 {
		return nil
	}
	defer w.unsettled.Add(-int64(len(all.settlements)))
	errs, err := w.store.Settle(work, all.settlements)
	if err != nil {
		first, more := all.settlements[0].ID, ""
		if others := len(all.settlements) - 1; others > 0 {
			more = fmt.Sprintf(" (and of %d others)", others)
		}
		return fmt.Errorf("worker: the outcome of job %s%s is not stored, so the job runs again: %w", first, more, err)
	}
	w.report(all.settlements, all.serving, errs)
	for _, l := range all.serving {
		w.ended(l)
	}
	return nil
}
