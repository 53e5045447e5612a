package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/pause"
	"github.com/sluice-queue/sluice/presence"
)

const (
	// beatInterval is how often the worker writes its heartbeat to the store.
	beatInterval = 10 * time.Second
	// maxKeepInterval is the longest time between two rounds of keep. leaseRounds is the least number of rounds
	// within a lease.
	maxKeepInterval = time.Second
	leaseRounds     = 6
	// askInterval is the least time between two questions to the store about signals of cancelled jobs.
	askInterval = 50 * time.Millisecond
)

// keep looks after the claimed jobs once a second, or more often if Options.Poll or a lease is short. keep ends
// attempts that exceed their timeout, gives up handlers that ignore their context, and renews the leases in one
// statement. keep also ends runs whose lease is lost, and hands back jobs that wait too long for a slot.
func (w *Worker) keep(ctx context.Context) {
	timer := time.NewTimer(w.keepInterval())
	defer timer.Stop()
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-w.shorter:
		case <-w.ask:
			if rest := askInterval - time.Since(looked); rest > 0 {
				timer.Reset(min(rest, w.keepInterval()))
				continue
			}
		}
		looked = time.Now()
		runs := w.runs()
		timeOut(runs)
		w.abandon(runs)
		w.handBackWaiting()
		w.handBackOverdue()
		w.renew(ctx, runs)
		timer.Reset(w.keepInterval())
	}
}

// tellStore stores how far jobs have come, and sends heartbeats. keep does not wait for these calls: a store that hangs
// would delay the end of a lost handler by their deadlines.
func (w *Worker) tellStore(ctx context.Context) {
	beats := time.NewTicker(beatInterval)
	defer beats.Stop()
	reports := time.NewTimer(0)
	defer reports.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.reported:
			reports.Reset(w.reportsDue())
		case <-reports.C:
			w.saveReports(ctx, w.runs())
		case <-beats.C:
			w.beat(ctx)
		case <-w.ear.Changed(): // others wait to see the new mode
			w.nudge()
			w.beat(ctx)
			beats.Reset(beatInterval)
		}
	}
}

// keepInterval is short enough to renew each lease several times before it ends.
func (w *Worker) keepInterval() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(min(w.options.Poll, maxKeepInterval, w.shortestLease/leaseRounds), 10*time.Millisecond)
}

// keepSooner starts a round of keep at once, because a lease is shorter than all before.
func (w *Worker) keepSooner() {
	select {
	case w.shorter <- struct{}{}:
	default:
	}
}

// doubt notes that a signal reports a job of this worker as cancelled, and soon asks the store about it.
func (w *Worker) doubt(id sluice.ID) {
	w.mu.Lock()
	r := w.held[id]
	if r != nil {
		w.doubted[r] = struct{}{}
	}
	w.mu.Unlock()
	if r == nil {
		return
	}
	select {
	case w.ask <- struct{}{}:
	default:
	}
}

// doubts returns the runs that signals reported as cancelled, and clears the set.
func (w *Worker) doubts() map[*run]struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	doubted := w.doubted
	w.doubted = make(map[*run]struct{})
	return doubted
}

func (w *Worker) renew(ctx context.Context, runs []*run) {
	asked := time.Now()
	doubted := w.doubts()
	var renewals []sluice.Renewal
	held := make(map[sluice.ID]*run)
	for _, r := range runs {
		if _, doubtful := doubted[r]; r.settled.Load() || !doubtful && asked.Sub(r.started) < min(w.options.Poll, maxKeepInterval, r.queue.Settings.Lease/leaseRounds)/2 {
			continue // settled, or its lease is fresh and no signal reports it as cancelled
		}
		held[r.claim.ID] = r
		renewals = append(renewals, sluice.Renewal{ID: r.claim.ID, Token: r.claim.Token, Lease: r.queue.Settings.Lease, Queue: r.claim.Queue})
	}
	if len(renewals) == 0 {
		return
	}
	call, stop := context.WithTimeout(ctx, w.patience(runs))
	defer stop()
	lost, err := w.store.Renew(call, renewals)
	if err != nil {
		w.renewFailed(ctx, held, err)
		return
	}
	var asking sync.WaitGroup
	for _, id := range lost {
		// A job that completed itself in its own transaction is not really lost.
		if r := held[id]; r != nil && !r.claim.SettledInTx() {
			asking.Go(func() { w.loseBy(r, w.whyLost(call, r.claim)) })
		}
		delete(held, id)
	}
	asking.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range held {
		// The store renews a lease only when less than two thirds are left.
		r.leaseUntil = asked.Add(r.queue.Settings.Lease * 2 / 3)
	}
}

// patience returns how long a renewal may take: until the first of the leases ends, so that its handler is told then. A
// lease that is nearly over, as after the process stood still, still gets a moment. If all leases are over, their handlers
// are told already, and half a lease is left to a run that begins meanwhile.
func (w *Worker) patience(runs []*run) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	first, half := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for _, r := range runs {
		lease := r.queue.Settings.Lease
		half = min(half, lease/2)
		if left := -pause.Since(r.leaseUntil); left > 0 && !r.settled.Load() {
			first = min(first, max(left, min(maxKeepInterval, lease/leaseRounds)))
		}
	}
	if first == math.MaxInt64 {
		return half
	}
	return first
}

// whyLost asks the store why a claim is lost: ErrCancelled or ErrLost. If the store does not answer, the result
// is ErrLost, after which a handler changes nothing.
func (w *Worker) whyLost(ctx context.Context, c *sluice.Claim) error {
	if job, err := w.store.Job(ctx, c.ID); err == nil && c.Cancelled(job) {
		return sluice.ErrCancelled
	}
	return sluice.ErrLost
}

// renewFailed ends the handlers whose lease ran out while the store was unreachable: another holder may have
// their jobs. If a handler still returns a result, the worker settles the job unless another holder has done
// so.
func (w *Worker) renewFailed(ctx context.Context, held map[sluice.ID]*run, err error) {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return
	}
	w.log.Emit(event.NotRenewed, "", "jobs", len(held), "error", err)
	for _, r := range held {
		if r.mayBeAnothers() {
			r.cancel(fmt.Errorf("the lease ran out and could not be renewed: %w", sluice.ErrLost))
		}
	}
}

// abandon settles the attempts of handlers that ignore the end of their context. Their slots stay taken until
// the handlers return.
func (w *Worker) abandon(runs []*run) {
	for _, r := range runs {
		if over, limited := r.overtime(); !limited || over < w.options.Abandon {
			continue
		}
		if r.claim.SettledInTx() {
			// The handler's transaction may still be open and would block every other settlement. If the
			// transaction is rolled back, the lease runs out.
			w.lose(r, "completed in a transaction, and the handler ignored its timeout")
			continue
		}
		if !r.settle() {
			continue
		}
		r.abandoned.Store(true)
		go r.abandon() // the handler still has the slot, and Backoff and OnFailure may take long
	}
}

// abandon sends the settlement of an attempt whose handler ignores its timeout.
func (r *run) abandon() {
	w := r.worker
	text := fmt.Sprintf("%v after %s, and the handler ignored it", ErrTimeout, r.timeout())
	settlement := failedBy(r, ErrTimeout, text, r.queue.Settings)
	settlement.Holder = w.holder.ID
	w.tell(r, settlement)
	w.settlements <- decided{settlement, r.servedQueue}
	w.failed(r.ctx, r, ErrTimeout, settlement)
}

// handBackWaiting releases jobs that were claimed ahead of handlers which then became slow. Another worker can
// then run them.
func (w *Worker) handBackWaiting() {
	for {
		select {
		case r := <-w.ready:
			if time.Since(r.readyAt) < w.options.Poll || w.busy.Load() < int64(w.options.Slots) { // a free slot takes it
				w.ready <- r
				return
			}
			if r.settle() {
				w.decide(decided{w.release(r.claim, "claimed ahead, and no slot became free"), r.servedQueue})
			}
			r.finish(r.readyAt) // counts the wait as a handler's duration: handlers have become that slow
		default:
			return
		}
	}
}

func (w *Worker) beat(ctx context.Context) {
	w.mu.Lock()
	holder := w.holder
	holder.Busy = len(w.running) - w.early
	w.mu.Unlock()
	holder.Mode = w.ear.Mode()
	told, err := presence.Given(w.store).Heartbeat(ctx, holder)
	switch {
	case err == nil:
		w.ear.Hear(told)
	case ctx.Err() == nil:
		w.log.Emit(event.HeartbeatFailed, "", "error", err)
	}
}
