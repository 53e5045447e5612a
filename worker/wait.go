package worker

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

// maxWait is when those that wait are looked at again at the latest: by then more may be known of the store's
// clock.
const maxWait = time.Second

// reserveTime is how long before it may start a job that was claimed ahead takes a slot's place. What falls due
// at the same instant and is claimed only then would else come before it.
const reserveTime = 50 * time.Millisecond

// startOf is when a claimed job may start, by the store's clock, which shows now at the least; zero: at once.
// A job is never started before it is due: it waits until it is sure that the store's clock shows its
// instant, and is late by as long as an answer of the store takes at the most. Counting from the claim instead
// would go wrong where the clock is set, and by what two clocks differ in speed.
func startOf(c *sluice.Claim, s sluice.Settings, now time.Time) time.Time {
	switch {
	case s.Jitter > 0:
		return later(c.DueAt, c.ClaimedAt).Add(rand.N(s.Jitter + 1))
	case s.Lead > 0 && c.DueAt.After(now):
		return c.DueAt
	}
	return time.Time{} // it is due
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// hold lets runs wait until they may start. One that was claimed before it was due takes no slot's place until
// then.
func (w *Worker) hold(runs []*run) {
	if len(runs) == 0 {
		return
	}
	now := w.settings.Now()
	w.mu.Lock()
	for _, r := range runs {
		if r.queue.Settings.Lead > 0 && r.claim.DueAt.After(now) {
			w.setEarly(r, true)
		}
	}
	w.waiting = append(w.waiting, runs...)
	w.mu.Unlock()
	w.lookAtWaiting()
}

// setEarly notes whether a run was claimed before it was due and still waits; w.mu is held.
func (w *Worker) setEarly(r *run, early bool) {
	if r.early == early {
		return
	}
	r.early = early
	by := -1
	if early {
		by = 1
	}
	w.early += by
	r.lane.early += by
	r.lane.ahead = r.lane.ahead || early
}

// lookAtWaiting makes startWaiting look at once.
func (w *Worker) lookAtWaiting() {
	select {
	case w.look <- struct{}{}:
	default:
	}
}

// startWaiting starts the runs that wait, each when the store's clock shows its instant.
func (w *Worker) startWaiting(ctx context.Context) {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.look:
		}
		due, next := w.dueOfWaiting()
		for _, r := range due {
			r.readyAt = time.Now()
			w.ready <- r
		}
		w.refill()
		timer.Reset(next)
	}
}

// refill makes those queues be looked at of which many jobs can be claimed ahead again: claims of one job each
// cost ten times as much as claims of many.
func (w *Worker) refill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.lanes {
		if l.ahead && 2*l.early <= l.slots {
			l.ahead = false
			l.hungry.Store(true)
			w.nudge()
		}
	}
}

// keepClock has the store's clock read again now and then while jobs wait for an instant by it.
func (w *Worker) keepClock(ctx context.Context) {
	w.mu.Lock()
	var queue string
	if len(w.waiting) > 0 {
		queue = w.waiting[0].lane.queue
	}
	w.mu.Unlock()
	if queue == "" {
		return
	}
	if _, err := w.settings.Queue(ctx, queue); err != nil {
		w.log.Tell(event.ClaimFailed, queue, "error", err)
	}
}

// dueOfWaiting takes out the runs that may start now, the first one first, and says when to look again.
func (w *Worker) dueOfWaiting() (due []*run, next time.Duration) {
	now := w.settings.Now()
	next = maxWait
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(r *run) bool {
		wait := r.startAt.Sub(now)
		if r.early && wait <= reserveTime && r.lane.taken-r.lane.early < r.lane.slots {
			w.setEarly(r, false)
		}
		switch {
		case r.early && wait > reserveTime:
			next = min(next, wait-reserveTime)
		case wait > 0:
			next = min(next, wait)
		case !r.early:
			due = append(due, r)
			return true
		case r.wantsSlot.IsZero(): // it is due, and its queue may use no more slots; the next run that ends looks again
			r.wantsSlot = time.Now()
		}
		return false
	})
	slices.SortFunc(due, func(a, b *run) int { return a.startAt.Compare(b.startAt) })
	return due, next
}

// takeWaiting takes runs out that wait and of which a condition holds.
func (w *Worker) takeWaiting(which func(*run) bool) []*run {
	w.mu.Lock()
	defer w.mu.Unlock()
	var taken []*run
	w.waiting = slices.DeleteFunc(w.waiting, func(r *run) bool {
		if !which(r) {
			return false
		}
		w.setEarly(r, false)
		taken = append(taken, r)
		return true
	})
	return taken
}

// releaseWaiting hands jobs back that wait and of which a condition holds.
func (w *Worker) releaseWaiting(reason string, which func(*run) bool) {
	for _, r := range w.takeWaiting(which) {
		if r.settle() {
			w.settlements <- decided{w.release(r.claim, reason), r.lane}
		}
		r.leave(neverRan)
	}
}

// handBackOverdue hands jobs back that were found due a while ago, and for which their queue still has no slot. One that is
// overdue because the look at it is late is not: it starts at once, and another claim would draw its jitter anew.
func (w *Worker) handBackOverdue() {
	now := time.Now()
	w.releaseWaiting("claimed ahead, and no slot became free", func(r *run) bool {
		return !r.wantsSlot.IsZero() && now.Sub(r.wantsSlot) >= w.options.Poll && r.lane.taken-r.lane.early >= r.lane.slots
	})
}
