package await

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

const (
	// lookInterval is the time between two looks at a job while the store hears all signals. A process that does not
	// listen ends jobs without a signal.
	lookInterval = time.Second
	// deafInterval is the same while signals may be lost.
	deafInterval = 100 * time.Millisecond
	// followInterval is the time between two looks at the reports of jobs that somebody follows.
	followInterval = 100 * time.Millisecond
	// lookShare bounds the looks without a signal: each is followed by this many times its duration.
	lookShare = 20
	// askInterval is the time after which jobs are asked for again. Stores remember them for twice as long.
	askInterval = 30 * time.Second
	// lookAtOnce is the most jobs of one statement.
	lookAtOnce = 1000
)

// afterwards are the times after which a new job is looked at again. It may have ended before the process that ended it
// heard that somebody waits.
var afterwards = []time.Duration{20 * time.Millisecond, 200 * time.Millisecond}

// watcher looks for the ends of the jobs for which a waiter waits.
type watcher struct {
	*Waiter
	lookAll time.Time     // when the next looks at all jobs are planned
	took    time.Duration // of the last planned look
	ask     time.Time     // the next time to ask for all jobs again
	follow  time.Time     // the next look at reports
	later   []look        // by time
}

// look is a look at jobs at an instant.
type look struct {
	at      time.Time
	ids     []sluice.ID
	planned bool // nothing says that one of the jobs has ended
}

// watch answers callers until nobody waits.
func (w *Waiter) watch(ctx context.Context) {
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() { _ = w.store.Watch(ctx, w.heed) }) // looks replace lost signals
	watcher := watcher{Waiter: w, ask: time.Now().Add(askInterval)}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.nudged:
		}
		timer.Reset(watcher.round(ctx))
	}
}

// heed notes what a signal says.
func (w *Waiter) heed(signal sluice.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case signal.Hearing != "":
		w.deaf = signal.Hearing != sluice.HearsAll
	case !signal.Ended.IsZero():
		if w.waiting[signal.Ended] == nil {
			return
		}
		w.signalled = append(w.signalled, signal.Ended)
	default:
		return
	}
	w.nudge()
}

// round asks for new jobs, looks at the jobs that may have ended, and returns the time until the next round.
func (w *watcher) round(ctx context.Context) time.Duration {
	now := time.Now()
	w.mu.Lock()
	if ctx.Err() != nil { // the next watch takes the new jobs
		w.mu.Unlock()
		w.nudge()
		return 0
	}
	fresh, ids := w.fresh, slices.Concat(w.fresh, w.signalled)
	w.fresh, w.signalled = nil, nil
	if !now.Before(w.lookAll) {
		w.planLooks(now)
	}
	if !now.Before(w.ask) {
		fresh, w.ask = slices.Collect(maps.Keys(w.waiting)), now.Add(askInterval)
	}
	w.mu.Unlock()
	if len(fresh) > 0 {
		err := w.port.Await(ctx, fresh)
		if errors.Is(err, sluice.ErrNotFound) || errors.Is(err, sluice.ErrInvalid) { // the store cannot wait
			w.fail(err)
			return lookInterval
		}
		w.note(err)
		w.lookLater(now, fresh)
	}
	var planned [][]sluice.ID
	for len(w.later) > 0 && !now.Before(w.later[0].at) {
		if next := w.later[0]; next.planned {
			planned = append(planned, next.ids)
		} else {
			ids = append(ids, next.ids...)
		}
		w.later = w.later[1:]
	}
	w.lookAt(ctx, ids)
	for _, ids := range planned {
		w.took = w.lookAt(ctx, ids)
	}
	w.lookForReports(ctx, now)
	return max(0, time.Until(w.next()))
}

// planLooks plans a look at each job, some jobs at a time, so that jobs whose end is signalled are answered in between. The
// caller holds the lock.
func (w *watcher) planLooks(now time.Time) {
	parts := slices.Collect(slices.Chunk(slices.Collect(maps.Keys(w.waiting)), lookAtOnce))
	interval := lookInterval
	if w.deaf {
		interval = deafInterval
	}
	apart := max(interval/time.Duration(max(1, len(parts))), lookShare*w.took)
	for i, ids := range parts {
		w.later = append(w.later, look{now.Add(time.Duration(i) * apart), ids, true})
	}
	w.sortLooks()
	w.lookAll = now.Add(max(interval, time.Duration(len(parts))*apart))
}

func (w *watcher) sortLooks() {
	slices.SortStableFunc(w.later, func(a, b look) int { return a.at.Compare(b.at) })
}

// next returns the instant of the next round.
func (w *watcher) next() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := w.lookAll
	if len(w.later) > 0 && w.later[0].at.Before(next) {
		next = w.later[0].at
	}
	if w.followed > 0 && w.follow.Before(next) {
		next = w.follow
	}
	return next
}

// lookLater notes further looks at new jobs.
func (w *watcher) lookLater(now time.Time, ids []sluice.ID) {
	for _, after := range afterwards {
		w.later = append(w.later, look{now.Add(after), ids, false})
	}
	w.sortLooks()
}

// lookAt answers the callers of those jobs that have ended, and returns how long that took.
func (w *watcher) lookAt(ctx context.Context, ids []sluice.ID) time.Duration {
	begun := time.Now()
	ids = w.stillWaiting(ids)
	for some := range slices.Chunk(ids, lookAtOnce) {
		ends, err := w.port.Ended(ctx, some)
		if ctx.Err() != nil {
			break
		}
		w.note(err)
		w.answer(ends)
	}
	return time.Since(begun)
}

// stillWaiting returns the jobs for which somebody waits, each once.
func (w *watcher) stillWaiting(ids []sluice.ID) []sluice.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := make(map[sluice.ID]bool, len(ids))
	return slices.DeleteFunc(ids, func(id sluice.ID) bool {
		gone := seen[id] || w.waiting[id] == nil
		seen[id] = true
		return gone
	})
}

// note remembers the error of a call. The next look tries again.
func (w *watcher) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failure = err
}

// fail gives all callers an error.
func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, one := range w.waiting {
		one.err = err
		close(one.done)
		delete(w.waiting, id)
	}
}

func (w *watcher) answer(ends []End) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, end := range ends {
		if one := w.waiting[end.ID]; one != nil {
			one.end = end
			close(one.done)
			delete(w.waiting, end.ID)
		}
	}
}
