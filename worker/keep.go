package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

const (
	// beatInterval is how often the worker tells the store that it is alive.
	beatInterval = 10 * time.Second
	// maxKeepInterval is how often the jobs that run are looked after, and leaseLooks how often at
	// the least within a lease.
	maxKeepInterval = time.Second
	leaseLooks      = 6
	// askInterval is how often signals of cancelled jobs make the worker ask the store at the most.
	askInterval = 50 * time.Millisecond
)

// keep looks after the jobs that run, once a second and, for short leases, more often: it ends those
// that take too long, gives up handlers that ignore their context, renews the leases in one
// statement, and notices those that are lost.
func (w *Worker) keep(ctx context.Context) {
	timer := time.NewTimer(w.keepInterval())
	defer timer.Stop()
	beaten := time.Now()
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
		if time.Since(beaten) >= beatInterval {
			beaten = time.Now()
			w.beat(ctx)
		}
		timer.Reset(w.keepInterval())
	}
}

// keepInterval lets each lease be renewed several times before it ends.
func (w *Worker) keepInterval() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return max(min(w.options.Poll, maxKeepInterval, w.shortestLease/leaseLooks), 10*time.Millisecond)
}

// keepSooner makes the keeping look at once, because a lease is shorter than those before.
func (w *Worker) keepSooner() {
	select {
	case w.shorter <- struct{}{}:
	default:
	}
}

// doubt notes that a signal calls a job of this worker cancelled, and has the store asked soon.
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

// doubts gives the runs that signals call cancelled, once.
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
		if _, doubtful := doubted[r]; r.settled.Load() || !doubtful && asked.Sub(r.started) < min(w.options.Poll, maxKeepInterval, r.queue.Settings.Lease/leaseLooks)/2 {
			continue // gone, or so new that its lease is whole, and nothing calls it cancelled
		}
		held[r.claim.ID] = r
		renewals = append(renewals, sluice.Renewal{ID: r.claim.ID, Token: r.claim.Token, Lease: r.queue.Settings.Lease, Queue: r.claim.Queue})
	}
	if len(renewals) == 0 {
		return
	}
	lost, err := w.store.Renew(ctx, renewals)
	if err != nil {
		w.renewFailed(ctx, held, err)
		return
	}
	var asking sync.WaitGroup
	for _, id := range lost {
		// A job that completed itself in its own transaction is lost in name only.
		if r := held[id]; r != nil && !r.claim.SettledInTx() {
			asking.Go(func() { w.loseBy(r, w.whyLost(ctx, r.claim)) })
		}
		delete(held, id)
	}
	asking.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range held {
		// The store renews when less than two thirds are left.
		r.leaseUntil = asked.Add(r.queue.Settings.Lease * 2 / 3)
	}
}

// whyLost asks the store why a claim is lost: ErrCancelled, or ErrLost. If the store does not answer, it is ErrLost, by which
// a handler touches nothing.
func (w *Worker) whyLost(ctx context.Context, c *sluice.Claim) error {
	if job, err := w.store.Job(ctx, c.ID); err == nil && c.Cancelled(job) {
		return sluice.ErrCancelled
	}
	return sluice.ErrLost
}

// renewFailed ends the handlers whose lease has run out while the store could not be reached: by
// now another holder may have their jobs. What they still return is settled, if nobody has.
func (w *Worker) renewFailed(ctx context.Context, held map[sluice.ID]*run, err error) {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return
	}
	w.log.Tell(event.NotRenewed, "", "jobs", len(held), "error", err)
	for _, r := range held {
		if r.mayBeAnothers() {
			r.cancel(fmt.Errorf("the lease ran out and could not be renewed: %w", sluice.ErrLost))
		}
	}
}

// abandon settles the attempts of handlers that ignore that their context has ended. Their slots
// stay taken until they return.
func (w *Worker) abandon(runs []*run) {
	for _, r := range runs {
		if over, limited := r.overtime(); !limited || over < w.options.Abandon {
			continue
		}
		if r.claim.SettledInTx() {
			// Its transaction may be open, and would keep every other settlement waiting. If it comes
			// to nothing, the lease runs out.
			w.lose(r, "completed in a transaction, and the handler ignored its timeout")
			continue
		}
		if !r.settle() {
			continue
		}
		text := fmt.Sprintf("%v after %s, and the handler ignored it", ErrTimeout, r.queue.Settings.Timeout)
		settlement := sluice.FailureOf(r.claim, r.queue.Settings, text)
		settlement.Holder = w.holder.ID
		w.tell(r, settlement)
		w.settlements <- decided{settlement, r.lane}
	}
}

// handBackWaiting releases jobs that were claimed ahead of handlers which then became slow, so that
// another worker can run them.
func (w *Worker) handBackWaiting() {
	for {
		select {
		case r := <-w.ready:
			if time.Since(r.readyAt) < w.options.Poll || w.busy.Load() < int64(w.options.Slots) { // a free slot takes it
				w.ready <- r
				return
			}
			if r.settle() {
				w.settlements <- decided{w.release(r.claim, "claimed ahead, and no slot became free"), r.lane}
			}
			r.finish(r.readyAt) // as if it had run: so slow are the handlers now
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
	if err := w.store.Beat(ctx, holder); err != nil && ctx.Err() == nil {
		w.log.Tell(event.NotBeaten, "", "error", err)
	}
}
