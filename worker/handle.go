package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/safe"
)

// QueueOptions adjust how a worker serves one queue. The zero value works.
type QueueOptions struct {
	// Slots is how many of the worker's slots the queue may use. Default: all.
	Slots int
	// Timeout limits an attempt at a job that sets no timeout of its own. Default: the queue's setting.
	Timeout time.Duration
	// MaxAttempts is how many failed attempts bury a job that sets no limit of its own. Default: the queue's setting.
	MaxAttempts int
	// Backoff returns the wait after a failed attempt, counted from 1. An error of [RetryAfter] sets the wait itself.
	// Default: the queue's setting.
	Backoff func(attempt int, err error) time.Duration
}

// over returns the queue with the settings that the handler has for itself.
func (o QueueOptions) over(queue *sluice.Queue) *sluice.Queue {
	if o.Timeout == 0 && o.MaxAttempts == 0 {
		return queue
	}
	own := *queue
	if o.Timeout > 0 {
		own.Settings.Timeout = o.Timeout
	}
	if o.MaxAttempts > 0 {
		own.Settings.MaxAttempts = o.MaxAttempts
	}
	return &own
}

// Handler does a job. If it returns nil, the job is completed. An error is a failed attempt: the job runs again
// after the queue's backoff, or is dead after its last attempt. [Snooze], [RateLimited], [Permanent] and
// [RetryAfter] end an attempt in other ways. A handler must be safe to run again, and should return when its context ends.
type Handler[T any] func(ctx context.Context, job *Job[T]) error

// Handle makes a worker serve a queue. The worker serves queues in the order of registration: an earlier queue
// takes free slots first. [Worker.Run] returns an error if the handler is nil, the queue name is invalid, or
// the queue has two handlers. A handler registered while Run works serves from then on; an invalid one ends Run
// with the error.
func Handle[T any](w *Worker, queue sluice.TypedQueue[T], handler Handler[T], options QueueOptions) {
	l := &servedQueue{queue: queue.Name(), slots: options.Slots, options: options}
	if options.Slots == 0 || options.Slots > w.options.Slots {
		l.slots = w.options.Slots
	}
	l.hungry.Store(true)
	l.do = func(ctx context.Context, r *run) error {
		payload, err := queue.Decode(r.claim.Payload)
		if err != nil {
			return err // an ordinary failed attempt: a worker of another version may know the type
		}
		job := &Job[T]{Claim: r.claim, Payload: payload, run: r}
		r.begins() // nothing may come between this and the handler: a rate limits handler calls
		if len(w.options.Middleware) == 0 {
			return handler(ctx, job)
		}
		return wrapped(w.options.Middleware, ctx, &Job[any]{Claim: r.claim, Payload: payload, run: r},
			func(ctx context.Context) error { return handler(ctx, job) })
	}
	if handler == nil {
		l.do = nil
	}
	w.serve(l)
}

// serve adds a queue to the worker's queues.
func (w *Worker) serve(l *servedQueue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		if err := w.add(l); err != nil {
			w.stop(&misuse{err})
			return
		}
	}
	w.settings.Expect(l.queue)
	w.serving = append(slices.Clip(w.serving), l) // goroutines that read the old slice may go on using it
	w.nudge()
}

// misuse ends Run because of a caller's error while Run worked.
type misuse struct{ err error }

func (m *misuse) Error() string { return m.err.Error() }

// add puts the queue's name into the holder, if the worker can serve the queue. The caller holds w.mu.
func (w *Worker) add(l *servedQueue) error {
	if err := sluice.CheckOwnQueueName(l.queue); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	switch {
	case slices.Contains(w.holder.Queues, l.queue):
		return fmt.Errorf("worker: queue %q has two handlers; it can have one", l.queue)
	case l.do == nil && (l.many == nil || l.many.call == nil):
		return fmt.Errorf("worker: %w", &sluice.InvalidError{Field: "handler", Rule: fmt.Sprintf("the handler of queue %q is nil; give Handle a function", l.queue)})
	}
	if err := l.check(); err != nil {
		return fmt.Errorf("worker: queue %q: %w", l.queue, err)
	}
	w.holder.Queues = append(slices.Clip(w.holder.Queues), l.queue)
	return nil
}

// check returns the first option that makes no sense.
func (l *servedQueue) check() error {
	if err := safe.Options(l.options); err != nil || l.many == nil {
		return err
	}
	return safe.Options(l.many.options)
}

// served lists the queues in the order of claiming.
func (w *Worker) served() []*servedQueue {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.serving
}

// servedQueue is a queue that the worker serves.
type servedQueue struct {
	queue   string
	options QueueOptions
	many    *many // not nil: calls get several jobs
	do      func(ctx context.Context, r *run) error
	hungry  atomic.Bool  // it may have jobs to claim
	full    atomic.Bool  // the queue or one of its tenants has reached a concurrency limit
	held    bool         // the last claim found the queue at its concurrency limit
	ended   atomic.Int64 // how many of its jobs have ended, as far as the store knows
	again   atomic.Int64 // when the next job that this worker handed back is due, in ns since 1970; 0: none is known

	slots int // how many of its jobs may run at once
	taken int // how many are claimed; guarded by Worker.mu
	early int // how many of the claimed jobs are not yet due; guarded by Worker.mu
	// ahead is true if jobs were claimed early since the last refill; guarded by Worker.mu.
	ahead bool
	// lookAt is when to look again without a signal. heldUntil is when to look at the earliest, even after a
	// signal. Only fetch uses these two and the fields below.
	lookAt    time.Time
	heldUntil time.Time
	claimedAt time.Time     // when its last claim was answered
	blocked   bool          // limits held the last claim back
	lead      time.Duration // claim_ahead in the settings of the last claim
	plain     bool          // one statement may claim from it and from other queues
	woken     bool          // the last claim from several queues followed a signal, or a full claim
	misses    int           // so many claims from several queues in a row got none of its jobs
	alone     bool          // the next claim takes from this queue alone
	paused    bool          // whether the log last recorded the queue as paused
	// logAfter is how long the worker may keep start times to itself; 0: the store needs none.
	logAfter time.Duration
}

// Snooze hands the job back and asks for it again after d. No attempt is counted. If d is 0 or less, the job
// runs again at once; a handler that always returns Snooze(0) never rests.
func Snooze(d time.Duration) error { return &snooze{max(d, 0)} }

type snooze struct{ delay time.Duration }

func (s *snooze) Error() string { return fmt.Sprintf("snoozed for %s", s.delay) }

// Permanent marks an error as final: the job becomes dead at once. Permanent(nil) returns nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{sound(err)}
}

type permanent struct{ err error }

func (p *permanent) Error() string { return "permanent: " + p.err.Error() }
func (p *permanent) Unwrap() error { return p.err }

// RetryAfter reports a failed attempt and sets the wait before the next one, instead of the queue's backoff. A
// negative d means at once. The job is dead all the same after its last attempt. The attempt counts as failed
// even if err is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		err = errRetryAsked
	}
	return &retryAfter{max(d, 0), sound(err)}
}

var errRetryAsked = errors.New("the handler asked to be called again")

type retryAfter struct {
	delay time.Duration
	err   error
}

func (r *retryAfter) Error() string { return fmt.Sprintf("%v (retry after %s)", r.err, r.delay) }
func (r *retryAfter) Unwrap() error { return r.err }

// errGoexit is the error of a handler that ended its goroutine.
var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit)")

// errNotCommitted is the error of a handler that returned nil although its CompleteTx was not committed.
var errNotCommitted = errors.New("the handler returned nil, but the transaction in which it completed the job was not committed")

// outcome returns the settlement for a handler's return value. If the handler completed the job in its own
// transaction, the settlement counts only if the transaction was not committed.
func (w *Worker) outcome(r *run, err error, cause error, settings sluice.Settings) sluice.Settlement {
	inTx, returned := r.claim.SettledInTx(), err == nil
	if inTx && returned {
		err = errNotCommitted
	}
	out := w.judge(r, err, cause, settings)
	out.ID, out.Token, out.Holder, out.Claim, out.InTx = r.claim.ID, r.claim.Token, w.holder.ID, r.claim, inTx
	out.Returned = inTx && returned
	return out
}

func (w *Worker) judge(r *run, err error, cause error, settings sluice.Settings) sluice.Settlement {
	if err == nil {
		out := sluice.Settlement{Event: sluice.EventComplete}
		if result := r.result.Load(); result != nil {
			out.Result = *result
		}
		return out
	}
	var snoozed *snooze
	var forGood *permanent
	switch {
	case errors.As(err, &snoozed):
		return sluice.Settlement{Event: sluice.EventRelease, Delay: snoozed.delay, Reason: "snoozed"}
	case errors.Is(cause, ErrShutdown):
		return sluice.Settlement{Event: sluice.EventRelease, Reason: "worker shut down"}
	case errors.Is(cause, sluice.ErrLost):
		// The worker stopped the handler because it could not renew the lease; the handler did not fail.
		return sluice.Settlement{Event: sluice.EventRelease, Reason: "the lease could not be renewed"}
	case errors.As(err, &forGood):
		return sluice.Settlement{Event: sluice.EventBury, Error: textOf(forGood.err), Reason: "permanent error"}
	case r.claim.Releases < maxOutages && sluice.Outage(w.store, err):
		return outage(r.claim, err)
	}
	return failure(r, err, cause, settings)
}

// maxOutages is how many releases a job may have before an error that looks like an outage counts as its own.
// By then the store works for other jobs, so the fault is probably in this handler.
const maxOutages = 100

// maxOutageDelay is the longest wait of a job whose handler finds the store unreachable again and again.
const maxOutageDelay = time.Minute

// outage hands back a job whose handler could not reach the store. No attempt is counted, because the handler
// did not fail. The wait grows with each release, so a job whose own statement crashes the database runs less
// and less often.
func outage(c *sluice.Claim, err error) sluice.Settlement {
	delay := min(time.Second<<min(c.Releases, 10), maxOutageDelay)
	var later *retryAfter
	if errors.As(err, &later) {
		delay = later.delay
	}
	return sluice.Settlement{Event: sluice.EventRelease, Delay: delay, Reason: "the store was out of reach: " + sluice.Brief(textOf(err))}
}

// failure makes an error a failed attempt.
func failure(r *run, err error, cause error, settings sluice.Settings) sluice.Settlement {
	text := textOf(err)
	if errors.Is(cause, ErrTimeout) {
		text = fmt.Sprintf("%v after %s: %s", ErrTimeout, r.timeout(), text)
	}
	return failedBy(r, err, text, settings)
}

// failedBy returns the settlement of an attempt that failed by an error, with a text for the error.
func failedBy(r *run, err error, text string, settings sluice.Settings) sluice.Settlement {
	var later *retryAfter
	var panic *PanicError
	out := sluice.FailureOf(r.claim, settings, text)
	switch {
	case out.Event != sluice.EventRetry:
	case errors.As(err, &later):
		out.Delay = later.delay
	case r.servedQueue.options.Backoff != nil:
		out.Delay = r.backoff(err, out.Delay)
	}
	if errors.As(err, &panic) {
		out.Stack = string(panic.Stack)
	}
	return out
}
