package worker

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/step"
)

// ManyHandler does several jobs of a queue in one call. It may settle each job by [Job.Settle] when that job is done. Its
// error is the outcome of all jobs that it has not settled: nil completes them. ctx ends when no job of the call is held
// any more, or when the drain is over; [Job.Context] ends with one job.
type ManyHandler[T any] func(ctx context.Context, jobs []*Job[T]) error

// ManyOptions adjust [HandleMany]. The zero value works.
type ManyOptions struct {
	// QueueOptions hold for each job. Slots is how many calls run at once; they take no slot of the worker. Default 1.
	// Timeout counts from the call.
	QueueOptions
	// Size is the most jobs of one call. Default 100.
	Size int
	// Within is how long the first job of a call waits for others. Default 100 ms.
	Within time.Duration
}

// HandleMany makes a worker serve a queue by calls that get several jobs. A call begins when it has Size jobs, or when
// its first job has waited for Within. All limits of the queue hold for each job. [Worker.Run] returns an error as for
// [Handle].
//
// Middleware does not wrap these calls. OnFailure gets the failures of each job.
func HandleMany[T any](w *Worker, queue sluice.TypedQueue[T], handler ManyHandler[T], options ManyOptions) {
	if options.Size == 0 {
		options.Size = 100
	}
	if options.Within == 0 {
		options.Within = 100 * time.Millisecond
	}
	if options.Slots == 0 {
		options.Slots = 1
	}
	calls := options.Slots
	l := &servedQueue{queue: queue.Name(), slots: calls * options.Size, options: options.QueueOptions}
	l.hungry.Store(true)
	l.many = &many{
		options: options,
		in:      make(chan *run, max(0, 2*calls*options.Size)+maxAhead), calls: make(chan struct{}, max(0, calls)),
	}
	l.many.call = func(ctx context.Context, runs []*run) error {
		var jobs []*Job[T]
		for _, r := range runs {
			var payload T
			err := caught(func() (err error) {
				payload, err = queue.Decode(r.claim.Payload)
				return err
			})
			if err != nil {
				r.settleOne(err)
				continue
			}
			jobs = append(jobs, &Job[T]{Claim: r.claim, Payload: payload, run: r})
		}
		if len(jobs) == 0 {
			return nil
		}
		for _, job := range jobs { // nothing may come between this and the handler: a rate limits handler calls
			job.run.begins()
		}
		return handler(ctx, jobs)
	}
	if handler == nil {
		l.many.call = nil
	}
	w.serve(l)
}

// many is how a worker serves a queue by calls that get several jobs.
type many struct {
	options ManyOptions
	call    func(ctx context.Context, runs []*run) error
	in      chan *run     // claimed jobs that wait for a call
	calls   chan struct{} // one entry for each call under way
	started bool          // collect runs; guarded by Worker.mu
	took    atomic.Int64  // how long the handler ran in the last call; 0: it was not called yet
	full    atomic.Bool   // jobs were handed back because no call ended: no more are claimed until one ends
}

// callsAheadTime is aheadTime for calls. At 2 ms, 100 empty handlers get claims of 900 jobs, but calls of 100 jobs claims of 200.
const callsAheadTime = 8 * time.Millisecond

// ahead returns how many jobs may be claimed beyond those of the calls: the number that quick calls finish within
// callsAheadTime.
func (m *many) ahead() int {
	took := m.took.Load()
	if took == 0 {
		return 0
	}
	return int(min(maxAhead, int64(m.options.Slots*m.options.Size)*int64(callsAheadTime)/took))
}

// room returns how many more jobs may be claimed. If calls are so quick that a call's worth of jobs is claimed ahead,
// room returns 0 until a quarter of all places is free, because a small claim costs more for each job.
func (m *many) room(slots, taken int) int {
	if m.full.Load() {
		return 0
	}
	ahead := m.ahead()
	free := slots + ahead - taken
	if ahead >= slots && 4*free < slots+ahead {
		return 0
	}
	return max(0, min(free, maxClaim))
}

// Context ends when this job is cancelled, lost or timed out, or when the drain is over. See [context.Cause]. The context
// of a [Handler] is the same.
func (j *Job[T]) Context() context.Context {
	if j.run == nil {
		return context.Background()
	}
	return j.run.attempt
}

// Settle ends one job of a [ManyHandler] by an error or nil, as the return value of a [Handler] does. The other jobs go
// on. A job that is settled already is a [sluice.ErrNotAllowed]; one that was cancelled or lost is an
// [sluice.ErrCancelled] or [sluice.ErrLost].
func (j *Job[T]) Settle(err error) error {
	if j.run == nil || j.run.servedQueue.many == nil {
		return fmt.Errorf("job %s: only jobs of HandleMany can be settled one by one: %w", j.id(), sluice.ErrNotAllowed)
	}
	if j.run.settleOne(err) {
		return nil
	}
	if cause := context.Cause(j.run.ctx); cause != nil && !j.run.over.Load() {
		return fmt.Errorf("settle job %s: %w", j.ID, cause)
	}
	return fmt.Errorf("job %s is settled already: %w", j.ID, sluice.ErrNotAllowed)
}

// settleOne settles a job of a call, and reports whether it did.
func (r *run) settleOne(err error) bool {
	if !r.settle() {
		return false
	}
	r.settleBy(r.attempt, sound(err))
	r.freeOnce()
	return true
}

// freeOnce frees the place of a job of a call.
func (r *run) freeOnce() {
	if r.over.CompareAndSwap(false, true) {
		r.leave(neverRan) // the duration of a call must not count as that of a handler
	}
}

// collect gathers the claimed jobs of a queue into calls, until no more jobs become ready.
func (w *Worker) collect(work context.Context, l *servedQueue) {
	for {
		select {
		case first := <-l.many.in:
			runs := l.many.gather(first, w.drains)
			if !w.waitForCall(l.many) {
				w.handBackGathered(l.many, runs)
				continue
			}
			go func() {
				defer func() {
					<-l.many.calls
					l.many.full.Store(false)
					w.nudge()
				}()
				w.runMany(work, l, runs)
			}()
		case <-w.noMore:
			return
		}
	}
}

// gather waits for the other jobs of a call. Once the worker drains, gather returns the jobs that it has.
func (m *many) gather(first *run, drains <-chan struct{}) []*run {
	runs := []*run{first}
	timer := time.NewTimer(m.options.Within)
	defer timer.Stop()
	for len(runs) < m.options.Size {
		select {
		case r := <-m.in:
			runs = append(runs, r)
		case <-timer.C:
			return runs
		case <-drains:
			return runs
		}
	}
	return runs
}

// waitForCall waits until the handler may be called, and reports whether it may. It waits no longer than Options.Poll, and
// not once the worker drains: another worker can then have the jobs.
func (w *Worker) waitForCall(m *many) bool {
	select {
	case m.calls <- struct{}{}:
		return true
	default:
	}
	timer := time.NewTimer(w.options.Poll)
	defer timer.Stop()
	select {
	case m.calls <- struct{}{}:
		return true
	case <-w.drains:
	case <-timer.C:
	}
	m.full.Store(true)
	select {
	case m.calls <- struct{}{}: // a call has ended just now, and perhaps noted that before
		m.full.Store(false)
		return true
	default:
		return false
	}
}

// handBackGathered releases the jobs of a call that cannot begin, and those that wait behind them.
func (w *Worker) handBackGathered(m *many, runs []*run) {
	for {
		for _, r := range runs {
			if r.settle() {
				w.settlements <- decided{w.release(r.claim, "claimed ahead, and no slot became free"), r.servedQueue}
			}
			r.freeOnce()
		}
		select {
		case r := <-m.in:
			runs = []*run{r}
		default:
			return
		}
	}
}

// runMany calls the handler for several jobs, and settles the jobs that the handler did not settle.
func (w *Worker) runMany(work context.Context, l *servedQueue, runs []*run) {
	w.mu.Lock()
	w.calls++
	w.mu.Unlock()
	defer w.called()
	ctx, stop := context.WithCancelCause(work)
	defer stop(nil)
	left := new(atomic.Int64)
	left.Store(int64(len(runs)))
	ready, unwatch := make([]*run, 0, len(runs)), make([]func() bool, 0, len(runs))
	begun := time.Now()
	for _, r := range runs {
		defer r.freeOnce()
		r.begun.Store(&begun)
		var free context.CancelFunc
		r.attempt, free = r.within(r.timeout(), begun)
		defer free()
		unwatch = append(unwatch, context.AfterFunc(r.attempt, func() {
			if left.Add(-1) == 0 {
				stop(context.Cause(r.attempt))
			}
		}))
		if w.mayBegin(r) {
			ready = append(ready, r)
		}
	}
	if len(ready) == 0 {
		return
	}
	of := step.Step{Name: step.Handle, Queue: l.queue}
	if len(ready) == 1 {
		of.Claim = ready[0].claim
	}
	ctx, end := step.Begin(ctx, w.store, of)
	err := errGoexit
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, debug.Stack()}
		}
		end(step.End{Jobs: len(ready), Err: failureOf(err)})
		for _, off := range unwatch { // else each job would start a goroutine once it is settled
			off()
		}
		for _, r := range ready {
			r.settleOne(err)
		}
	}()
	called := time.Now()
	err = sound(l.many.call(ctx, ready))
	l.many.took.Store(max(1, int64(time.Since(called))))
}

// called notes that a call has returned. The handler may have settled all its jobs before.
func (w *Worker) called() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls--
	w.endDrain()
}

// mayBegin reports whether a job of a call may begin. It hands back a job that must not begin any more, and buries a
// job whose payload breaks the queue's schema.
func (w *Worker) mayBegin(r *run) bool {
	if why := r.late(); why != "" {
		if r.settle() {
			w.settlements <- decided{w.release(r.claim, why), r.servedQueue}
		}
		r.freeOnce()
		return false
	}
	err := caught(func() error {
		return Permanent(sluice.CheckSchema(w.options.PayloadChecker, *r.queue, r.claim.Payload))
	})
	if err != nil {
		r.settleOne(err)
	}
	return err == nil
}

// caught makes a panic at one job of a call an error of that job. It would fail the other jobs too, or end the process.
func caught(do func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{value, debug.Stack()}
		}
	}()
	return do()
}
