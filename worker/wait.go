package worker

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

// maxWait is the longest time between two looks at waiting runs: by then the store's clock may be known better.
const maxWait = time.Second

// reserveTime is how long before its start a job claimed ahead takes a slot. Otherwise a job that falls due at
// the same instant, but is claimed only then, would start before it.
const reserveTime = 50 * time.Millisecond

// startOf returns when a claimed job may start, by the store's clock; zero: at once. The store's clock shows at
// least now. A job never starts before it is due: the worker waits until the store's clock certainly shows the
// instant. The job is late by one store round trip at most. Counting from the claim would fail when somebody
// sets the clock, and would err by the difference in speed of two clocks.
func startOf(c *sluice.Claim, s sluice.Settings, now time.Time) time.Time {
	switch {
	case s.Jitter > 0:
		return later(c.DueAt, c.ClaimedAt).Add(rand.N(s.Jitter + 1))
	case s.ClaimAhead > 0 && c.DueAt.After(now):
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

// hold makes runs wait until they may start. A run that was claimed before it was due takes no slot until then.
func (w *Worker) hold(runs []*run) {
	if len(runs) == 0 {
		return
	}
	now := w.settings.Now()
	w.mu.Lock()
	for _, r := range runs {
		if r.queue.Settings.ClaimAhead > 0 && r.claim.DueAt.After(now) {
			w.setEarly(r, true)
		}
	}
	w.waiting = append(w.waiting, runs...)
	w.mu.Unlock()
	w.lookAtWaiting()
}

// setEarly notes whether a run was claimed before it was due and still waits. The caller holds w.mu.
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
	r.servedQueue.early += by
	r.servedQueue.ahead = r.servedQueue.ahead || early
}

// lookAtWaiting wakes startWaiting.
func (w *Worker) lookAtWaiting() {
	select {
	case w.look <- struct{}{}:
	default:
	}
}

// startWaiting starts each waiting run when the store's clock shows its instant.
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
			w.enter(ctx, r)
		}
		if len(due) > 0 { // relieve may have looked before these runs were due
			w.openSlots(ctx)
		}
		w.refill()
		timer.Reset(next)
	}
}

// refill makes a queue hungry once many of its jobs can be claimed ahead again. A job claimed alone costs ten
// times as much as a job of a large claim.
func (w *Worker) refill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.serving {
		if l.ahead && 2*l.early <= l.slots {
			l.ahead = false
			l.hungry.Store(true)
			w.nudge()
		}
	}
}

// keepClock reads the store's clock again now and then while jobs wait for an instant by it.
func (w *Worker) keepClock(ctx context.Context) {
	w.mu.Lock()
	var queue string
	if len(w.waiting) > 0 {
		queue = w.waiting[0].servedQueue.queue
	}
	w.mu.Unlock()
	if queue == "" {
		return
	}
	if _, err := w.settings.Queue(ctx, queue); err != nil {
		w.log.Emit(event.ClaimFailed, queue, "error", err)
	}
}

// dueOfWaiting removes and returns the runs that may start now, earliest first, and the time until the next
// look.
func (w *Worker) dueOfWaiting() (due []*run, next time.Duration) {
	now := w.settings.Now()
	next = maxWait
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(r *run) bool {
		wait := r.startAt.Sub(now)
		if r.early && wait <= reserveTime && r.servedQueue.taken-r.servedQueue.early < r.servedQueue.slots {
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
		case r.wantsSlot.IsZero(): // it is due, but its queue may use no more slots; the next run that ends looks again
			r.wantsSlot = time.Now()
		}
		return false
	})
	slices.SortFunc(due, func(a, b *run) int { return a.startAt.Compare(b.startAt) })
	return due, next
}

// takeWaiting removes and returns the waiting runs that meet a condition.
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

// releaseWaiting hands back the waiting jobs that meet a condition.
func (w *Worker) releaseWaiting(reason string, which func(*run) bool) {
	for _, r := range w.takeWaiting(which) {
		if r.settle() {
			w.decide(decided{w.release(r.claim, reason), r.servedQueue})
		}
		r.leave(neverRan)
	}
}

// handBackOverdue hands back jobs that were found due a while ago and whose queue still has no slot. A job that
// is overdue only because the look was late starts at once instead: another claim would draw its jitter anew.
func (w *Worker) handBackOverdue() {
	now := time.Now()
	w.releaseWaiting("claimed ahead, and no slot became free", func(r *run) bool {
		return !r.wantsSlot.IsZero() && now.Sub(r.wantsSlot) >= w.options.Poll && r.servedQueue.taken-r.servedQueue.early >= r.servedQueue.slots
	})
}
