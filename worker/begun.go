package worker

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
)

// paced notes what a claim from a queue with a rate took, and that the store has heard what it was told of earlier ones.
func (w *Worker) paced(l *lane, s sluice.Settings, request sluice.ClaimRequest, claimed sluice.Claimed) {
	if !claimed.Unheard {
		w.begun.Heard(request.Begun)
	}
	if !claimed.Paced {
		l.tellAfter = 0
		return
	}
	l.tellAfter = min(max(s.Rate.Per/4, minWait), time.Second)
	if len(claimed.Jobs) > 0 {
		w.begun.Claimed(l.queue, request.Token, len(claimed.Jobs))
	}
}

// tellBegun tells the store when the jobs of a queue with a rate began, where no claim has told it for a while: until
// then they count against the rate, as if they were to begin yet. It says when there will be something to tell.
func (w *Worker) tellBegun(ctx context.Context, l *lane) (next time.Time) {
	wait := w.begun.Waits(l.queue, l.tellAfter)
	if wait < 0 {
		return time.Now().Add(w.options.Poll)
	}
	if wait == 0 {
		wait = max(l.tellAfter, minWait)
		if !w.tellNow(ctx, l.queue) {
			wait = minWait
		}
	}
	return time.Now().Add(wait)
}

// tellNow tells the store when jobs of a queue began. It reports whether the store has heard.
func (w *Worker) tellNow(ctx context.Context, queue string) bool {
	told := w.begun.Tell(queue)
	claimed, err := w.store.Claim(ctx, sluice.ClaimRequest{
		Queue: queue, Holder: w.holder.ID, Lease: time.Minute, Token: sluice.NewToken(), Tells: true, Begun: told,
	})
	if err != nil || claimed.Unheard {
		return false
	}
	w.begun.Heard(told)
	return true
}

// tellAllBegun tells the store of all queues, before the worker leaves.
func (w *Worker) tellAllBegun(ctx context.Context) {
	for _, queue := range w.begun.Queues(0) {
		for range 10 {
			if w.tellNow(ctx, queue) || !waitedFor(ctx, minWait) {
				break
			}
		}
	}
}

// waitedFor reports whether a while has passed before ctx ended.
func waitedFor(ctx context.Context, while time.Duration) bool { return !waitFor(ctx.Done(), while) }

// begins notes that the handler of a run is called now.
func (r *run) begins() {
	if r.counted.CompareAndSwap(false, true) {
		if !r.startAt.IsZero() {
			r.worker.nudge()
		}
		r.worker.begun.Begins(r.claim.Token)
	}
}

// neverBegan notes that the handler of a run will not be called, unless it was.
func (r *run) neverBegan() {
	if r.counted.CompareAndSwap(false, true) {
		r.worker.begun.Gone(r.claim.Token, 1)
	}
}
