package worker

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/internal/pause"
	"github.com/sluice-queue/sluice/progress"
	"github.com/sluice-queue/sluice/step"
)

// run is one attempt at one job.
type run struct {
	worker      *Worker
	servedQueue *servedQueue
	claim       *sluice.Claim
	queue       *sluice.Queue             // as it was when the job was claimed
	started     time.Time                 // when it was claimed
	asked       time.Time                 // when its claim was sent to the store
	begun       atomic.Pointer[time.Time] // when its handler began; nil: it waits for a slot
	cancel      context.CancelCauseFunc
	result      atomic.Pointer[[]byte]
	report      atomic.Pointer[progress.Report] // not stored yet; nil: none
	settled     atomic.Bool
	counted     atomic.Bool // for the rate: the handler began, or never will
	startAt     time.Time   // when it may start, by the store's clock; zero: at once
	readyAt     time.Time   // since when it waits for a slot
	early       bool        // it waits until it is due; guarded by Worker.mu
	// wantsSlot is since when the run is known to be due and without a slot; guarded by Worker.mu.
	wantsSlot time.Time
	abandoned atomic.Bool // its attempt is settled, and its handler may never return

	ctx context.Context
	// attempt is ctx with the timeout of the attempt. over is true once a job of a ManyHandler has left its place.
	attempt context.Context
	over    atomic.Bool
	// leaseUntil is the earliest end of the lease, by this process's clock; guarded by Worker.mu.
	leaseUntil time.Time
}

// settle returns true to exactly one caller, which must then send a settlement of the job.
func (r *run) settle() bool {
	if !r.settled.CompareAndSwap(false, true) {
		return false
	}
	r.worker.unsettled.Add(1)
	return true
}

// start gives claimed jobs to slots, and starts further slots up to the limit.
func (w *Worker) start(work context.Context, l *servedQueue, claims []*sluice.Claim, queue *sluice.Queue, asked time.Time) {
	runs := newRuns(w, work, l, claims, queue, asked)
	var held []*run
	shown := w.settings.Now()
	for _, r := range runs {
		if r.startAt = startOf(r.claim, queue.Settings, shown); !r.startAt.IsZero() {
			held = append(held, r)
		}
	}
	w.mu.Lock()
	older, sooner := w.register(l, runs)
	w.mu.Unlock()
	for _, o := range older {
		w.lose(o, "recovered, and handed out to this worker again")
	}
	if sooner {
		w.keepSooner()
	}
	for _, r := range runs {
		if r.startAt.IsZero() {
			w.enter(work, r)
		}
	}
	w.openSlots(work)
	w.hold(held)
}

// openSlots opens slots for the runs that wait for one.
func (w *Worker) openSlots(work context.Context) {
	w.mu.Lock()
	more, wanting := w.moreSlots()
	w.mu.Unlock()
	for range more {
		go w.slot(work)
	}
	if wanting {
		time.AfterFunc(reliefTime, func() { w.relieve(work) })
	}
}

// newRuns makes a run of each claimed job of a queue.
func newRuns(w *Worker, work context.Context, l *servedQueue, claims []*sluice.Claim, queue *sluice.Queue, asked time.Time) []*run {
	now := time.Now()
	queue = l.options.over(queue)
	runs := make([]*run, len(claims))
	for i, c := range claims {
		r := &run{worker: w, servedQueue: l, claim: c, queue: queue, started: now, asked: asked, readyAt: now, leaseUntil: asked.Add(queue.Settings.Lease)}
		r.ctx, r.cancel = context.WithCancelCause(work)
		r.counted.Store(l.logAfter == 0) // the store does not count starts of this queue
		runs[i] = r
	}
	return runs
}

// register makes keep look after new runs of a queue. It returns older runs of the same jobs, and whether leases are now to
// be renewed sooner. The caller holds w.mu.
func (w *Worker) register(l *servedQueue, runs []*run) (older []*run, sooner bool) {
	for _, r := range runs {
		if o := w.held[r.claim.ID]; o != nil {
			older = append(older, o)
		}
		w.running[r] = struct{}{}
		w.held[r.claim.ID] = r
	}
	l.taken += len(runs)
	if l.many != nil {
		w.inMany += len(runs)
	}
	lease := runs[0].queue.Settings.Lease
	sooner = lease < w.shortestLease
	w.shortestLease = min(w.shortestLease, lease)
	return older, sooner
}

// enter makes a run wait for a slot, or for a call that gets several jobs.
func (w *Worker) enter(work context.Context, r *run) {
	many := r.servedQueue.many
	if many == nil {
		w.ready <- r
		return
	}
	w.mu.Lock()
	first := !many.started
	many.started = true
	w.mu.Unlock()
	if first {
		go w.collect(work, r.servedQueue)
	}
	many.in <- r
}

// moreSlots returns how many slots to open for the running and waiting jobs, and whether relieve should check
// again. The caller holds w.mu.
func (w *Worker) moreSlots() (more int, wanting bool) {
	more = min(w.options.Slots, len(w.running)-w.inMany) - w.slots
	if few := max(quickSlots*runtime.GOMAXPROCS(0)-w.slots, 0); w.pace > 0 && w.pace < quickPace && more > few {
		more, wanting = few, !w.relieving
		w.relieving = true
	}
	more = max(more, 0)
	w.slots += more
	return more, wanting
}

const (
	// quickPace is the longest duration of a quick handler. A few goroutines then run the jobs of a thousand,
	// at less cost.
	quickPace = 100 * time.Microsecond
	// quickSlots is the number of goroutines per processor for quick handlers.
	quickSlots = 4
	// reliefTime is how long a job may wait for such a goroutine before the other slots open.
	reliefTime = 2 * time.Millisecond
)

// relieve opens slots for jobs that wait although handlers were quick lately.
func (w *Worker) relieve(work context.Context) {
	w.mu.Lock()
	w.relieving = false
	more := min(len(w.ready), w.options.Slots-w.slots)
	w.slots += more
	w.mu.Unlock()
	for range more {
		go w.slot(work)
	}
}

// keptStack is how much of its stack a slot uses while it waits. The garbage collector would halve a stack of which less
// than a quarter is in use, and the next handler would grow it again. That cost 1,000 slots an eighth of their CPU.
const keptStack = 4 << 10

// slot runs jobs, one after the other. One goroutine runs many jobs, so its stack grows only once.
func (w *Worker) slot(work context.Context) {
	var kept [keptStack]byte
	defer runtime.KeepAlive(&kept)
	ended := false
	defer func() {
		if !ended { // a handler ended the goroutine: start another in its place
			w.busy.Add(-1)
			go w.slot(work)
		}
	}()
	for {
		select {
		case r := <-w.ready:
			w.busy.Add(1)
			r.run()
			w.busy.Add(-1)
		case <-w.noMore:
			ended = true
			return
		}
	}
}

// run runs the handler and settles the job.
func (r *run) run() {
	w := r.worker
	begun := time.Now()
	r.begun.Store(&begun)
	defer r.finish(begun)
	if why := r.late(); why != "" {
		if r.settle() {
			w.settlements <- decided{w.release(r.claim, why), r.servedQueue}
		}
		return
	}
	ctx, stop := r.within(r.timeout(), begun)
	defer stop()
	r.attempt = ctx
	err := r.call(ctx)
	if r.settle() { // else it was abandoned or lost in the meantime
		r.settleBy(ctx, err)
	}
}

// settleBy sends the settlement for the error of the handler, or nil.
func (r *run) settleBy(ctx context.Context, err error) {
	w := r.worker
	settlement := w.outcome(r, err, context.Cause(ctx), r.queue.Settings)
	if reason := w.closeShared(ctx, r, err); reason != "" {
		settlement.Reason = reason
	}
	w.tell(r, settlement)
	w.settlements <- decided{settlement, r.servedQueue}
	if !settlement.InTx {
		w.failed(ctx, r, err, settlement)
	}
}

// late returns why a job claimed ahead must not begin any more; empty: the job may begin.
func (r *run) late() string {
	switch {
	case r.worker.draining.Load():
		return "worker shut down"
	case r.settled.Load(), r.ctx.Err() != nil:
		return "cancelled or lost before it began"
	case r.mayBeAnothers():
		return "its lease may have run out before it began"
	}
	why, err := r.worker.pauses.Why(r.ctx, r.claim, r.asked)
	if err != nil {
		return err.Error()
	}
	return why
}

// mayBeAnothers reports whether the lease may be over, so another holder may have the job. This process may
// have been frozen, or the answer to its claim delayed, for any time.
func (r *run) mayBeAnothers() bool {
	r.worker.mu.Lock()
	defer r.worker.mu.Unlock()
	return pause.Since(r.leaseUntil) >= 0
}

// call calls the handler and returns every outcome, including a panic, as an error.
func (r *run) call(ctx context.Context) (err error) {
	returned := false
	ctx, end := step.Begin(ctx, r.worker.store, step.Step{Name: step.Handle, Queue: r.claim.Queue, Claim: r.claim})
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, debug.Stack()}
		} else if !returned {
			end(step.End{Jobs: 1, Err: errGoexit})
			// The goroutine ends with this call, so settle here.
			if r.settle() {
				r.settleBy(ctx, errGoexit)
			}
			return
		}
		end(step.End{Jobs: 1, Err: failureOf(err)})
	}()
	if err = sluice.CheckSchema(r.worker.options.PayloadChecker, *r.queue, r.claim.Payload); err != nil {
		err = Permanent(err)
	} else {
		err = r.servedQueue.do(ctx, r)
	}
	returned = true
	return sound(err)
}

// failureOf returns the error of a failed attempt, nil for a job that was handed back.
func failureOf(err error) error {
	var snoozed *snooze
	if errors.As(err, &snoozed) {
		return nil
	}
	return err
}

// finish frees the slot and records how long its handler took.
func (r *run) finish(begun time.Time) { r.leave(time.Since(begun)) }

// neverRan is the duration of a run whose handler was not called.
const neverRan = time.Duration(-1)

// leave frees the place of the run.
func (r *run) leave(took time.Duration) {
	w := r.worker
	r.neverBegan()
	r.cancel(nil)
	w.mu.Lock()
	if took != neverRan {
		w.pace += (took - w.pace) / 16
	}
	r.servedQueue.taken--
	if r.servedQueue.many != nil {
		w.inMany--
	}
	delete(w.running, r)
	if w.held[r.claim.ID] == r {
		delete(w.held, r.claim.ID)
	}
	w.endDrain()
	waits := len(w.waiting) > 0
	w.mu.Unlock()
	w.nudge()
	if waits {
		w.lookAtWaiting() // a waiting run may now get its queue's slot
	}
}

// endDrain ends the drain if nothing runs any more. The caller holds w.mu.
func (w *Worker) endDrain() {
	if w.draining.Load() && len(w.running) == 0 && w.calls == 0 {
		close(w.drained)
	}
}

// since returns when the run's handler began, or when its job was claimed if the handler has not begun.
func (r *run) since() time.Time {
	if begun := r.begun.Load(); begun != nil {
		return *begun
	}
	return r.started
}

// loseBy ends a run whose job this worker no longer holds, by ErrCancelled or ErrLost.
func (w *Worker) loseBy(r *run, cause error) {
	why := "recovered or settled by another"
	if errors.Is(cause, sluice.ErrCancelled) {
		why = "cancelled"
	}
	w.end(r, cause, why)
}

// lose ends a run whose job another holder may have.
func (w *Worker) lose(r *run, why string) { w.end(r, sluice.ErrLost, why) }

// end ends a run whose job this worker no longer holds, without a settlement.
func (w *Worker) end(r *run, cause error, why string) {
	if r.settled.CompareAndSwap(false, true) {
		r.cancel(cause)
		w.ended(r.servedQueue) // the job was cancelled or recovered, so it no longer counts as in flight here
		w.log.EmitJob(event.ClaimLost, r.claim, "reason", why)
		for _, waiting := range w.takeWaiting(func(other *run) bool { return other == r }) {
			waiting.leave(neverRan)
		}
	}
}

// tell logs the outcome of an attempt, unless the outcome depends on the handler's own transaction.
func (w *Worker) tell(r *run, s sluice.Settlement) {
	if s.InTx {
		return
	}
	took := time.Since(r.since())
	if s.Event == sluice.EventComplete { // a fast path: workers complete thousands of jobs a second
		w.log.EmitJob(event.JobCompleted, r.claim, "duration", took)
		return
	}
	w.log.EmitJob(event.Of(s.Event), r.claim, "duration", took, "error", s.Error, "reason", s.Reason, "retry_in", event.Wait(s.Delay))
}
