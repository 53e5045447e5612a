package worker

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-queue/sluice"
)

// paced records the start times that the store accepted with this claim, and the jobs that the claim took from
// a queue with a rate.
func (w *Worker) paced(l *servedQueue, s sluice.Settings, request sluice.ClaimRequest, claimed sluice.Claimed) {
	if !claimed.Unheard {
		w.begun.Heard(request.Begun)
	}
	if !claimed.Paced {
		l.logAfter = 0
		return
	}
	l.logAfter = min(max(s.Rate.Per/4, minWait), time.Second)
	if len(claimed.Jobs) > 0 {
		w.begun.Claimed(l.queue, request.Token, len(claimed.Jobs))
	}
}

// reportBegun reports to the store when jobs of a queue with a rate began, if no claim has done so for a while.
// Until the report, the store counts those jobs against the rate as not yet started. reportBegun returns when the
// next report is due.
func (w *Worker) reportBegun(ctx context.Context, l *servedQueue) (next time.Time) {
	wait := w.begun.Waits(l.queue, l.logAfter)
	if wait < 0 {
		return time.Now().Add(w.options.Poll)
	}
	if wait == 0 {
		wait = max(l.logAfter, minWait)
		if heard, _ := w.reportNow(ctx, l.queue); !heard {
			wait = minWait
		}
	}
	return time.Now().Add(wait)
}

// reportNow reports to the store when jobs of a queue began. Heard is whether the store accepted the report.
func (w *Worker) reportNow(ctx context.Context, queue string) (heard bool, err error) {
	told := w.begun.Report(queue)
	claimed, err := w.store.Claim(ctx, sluice.ClaimRequest{
		Queue: queue, Holder: w.holder.ID, Lease: time.Minute, Token: sluice.NewToken(), ReportsBegun: true, Begun: told,
	})
	if err != nil || claimed.Unheard {
		return false, err
	}
	w.begun.Heard(told)
	return true, nil
}

// reportAllBegun reports the start times of all queues, before the worker leaves. A store that does not answer is asked
// once: each call may take its deadline.
func (w *Worker) reportAllBegun(ctx context.Context) {
	for _, queue := range w.begun.Queues(0) {
		for range 10 {
			heard, err := w.reportNow(ctx, queue)
			if err != nil && !errors.Is(err, sluice.ErrNotAllowed) {
				return
			}
			if heard || err != nil || !waitedFor(ctx, minWait) {
				break
			}
		}
	}
}

// waitedFor reports whether the full time passed before ctx ended.
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

// neverBegan notes that the handler of a run will never be called, unless the handler has already begun.
func (r *run) neverBegan() {
	if r.counted.CompareAndSwap(false, true) {
		r.worker.begun.Gone(r.claim.Token, 1)
	}
}
