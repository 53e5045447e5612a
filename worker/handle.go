package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
)

// QueueOptions adjust how a worker serves one queue. The zero value works.
type QueueOptions struct {
	// Slots is how many of the worker's slots the queue may use. Default: all.
	Slots int
}

// Handler does a job. If it returns nil, the job is completed. An error is a failed attempt: the
// job is retried after the queue's backoff, or dead after its last attempt; see Snooze, Permanent
// and RetryAfter for the other ways. A handler must be safe to run again, and should end
// when its context does.
type Handler[T any] func(ctx context.Context, job *Job[T]) error

// Handle makes a worker serve a queue. Queues are served in the order in which they were handled:
// an earlier one takes free slots first. Run says what is wrong with it: a handler that is nil, a bad name, a queue that
// has two. One that is registered while Run works is served from then on, and ends Run with the error if it is wrong.
func Handle[T any](w *Worker, queue sluice.TypedQueue[T], handler Handler[T], options QueueOptions) {
	l := &lane{queue: queue.Name(), slots: options.Slots}
	if options.Slots == 0 || options.Slots > w.options.Slots {
		l.slots = w.options.Slots
	}
	l.hungry.Store(true)
	l.do = func(ctx context.Context, r *run) error {
		payload, err := queue.Decode(r.claim.Payload)
		if err != nil {
			return err // a failed attempt like others: a worker of another version may know the type
		}
		job := &Job[T]{Claim: r.claim, Payload: payload, run: r}
		r.begins() // nothing may pass between this and the handler: a rate bounds when handlers are called
		return handler(ctx, job)
	}
	if handler == nil {
		l.do = nil
	}
	w.serve(l)
}

// serve adds a queue to those that the worker serves.
func (w *Worker) serve(l *lane) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ran {
		if err := w.add(l); err != nil {
			w.stop(&misuse{err})
			return
		}
	}
	w.settings.Expect(l.queue)
	w.lanes = append(slices.Clip(w.lanes), l) // who reads the old ones goes on
	w.nudge()
}

// misuse ends Run because of what a caller did while it worked.
type misuse struct{ err error }

func (m *misuse) Error() string { return m.err.Error() }

// add names a queue among those of the holder, if it can be served; w.mu is held.
func (w *Worker) add(l *lane) error {
	if err := sluice.CheckQueueName(l.queue); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	switch {
	case slices.Contains(w.holder.Queues, l.queue):
		return fmt.Errorf("worker: queue %q has two handlers; it can have one", l.queue)
	case l.do == nil:
		return fmt.Errorf("worker: %w", &sluice.InvalidError{Field: "handler", Rule: fmt.Sprintf("the handler of queue %q is nil; give Handle a function", l.queue)})
	case l.slots < 0:
		return fmt.Errorf("worker: slots of queue %q: %d must be 0 (all) or more", l.queue, l.slots)
	}
	w.holder.Queues = append(slices.Clip(w.holder.Queues), l.queue)
	return nil
}

// served lists the queues in the order of claiming.
func (w *Worker) served() []*lane {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lanes
}

// lane is a queue that the worker serves.
type lane struct {
	queue  string
	do     func(ctx context.Context, r *run) error
	hungry atomic.Bool  // it may have jobs to claim
	full   atomic.Bool  // no more of its jobs, or of a tenant's, may be in flight
	held   bool         // its last claim found that no more of its jobs may be in flight
	ended  atomic.Int64 // how many of its jobs have ended, as the store knows

	slots int // how many jobs of it may run at once
	taken int // how many are claimed; guarded by Worker.mu
	early int // how many of those wait until they are due; guarded by Worker.mu
	// ahead says that some were claimed before they were due since that was last refilled; guarded by Worker.mu.
	ahead bool
	// Used by the fetching alone: when to look again if nobody says anything, and whatever anybody says.
	lookAt    time.Time
	heldUntil time.Time
	claimedAt time.Time     // when its last claim was answered
	blocked   bool          // that claim was held back by limits
	lead      time.Duration // as the settings had it
	plain     bool          // it is claimed from with others
	gaveNone  bool          // the last claim from several queues got nothing of it
	alone     bool          // and the one before that: the next is from it alone
	paused    bool          // the queue, as the log was told
	// tellAfter is how long the store may not know when jobs began; 0: it does not ask.
	tellAfter time.Duration
}

// Snooze hands the job back and asks for it again after a while. No attempt is counted. After no time
// or less it is handed out again at once, so that a handler which always says so never rests.
func Snooze(d time.Duration) error { return &snooze{max(d, 0)} }

type snooze struct{ delay time.Duration }

func (s *snooze) Error() string { return fmt.Sprintf("snoozed for %s", s.delay) }

// Permanent says that the job will never succeed: it is dead at once. Of nil it is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

type permanent struct{ err error }

func (p *permanent) Error() string { return "permanent: " + p.err.Error() }
func (p *permanent) Unwrap() error { return p.err }

// RetryAfter says that the attempt failed and when the next one makes sense, instead of the
// queue's backoff; a negative one is at once. It is dead all the same after its last attempt. The
// error may be nil; the attempt counts as failed all the same.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		err = errRetryAsked
	}
	return &retryAfter{max(d, 0), err}
}

var errRetryAsked = errors.New("the handler asked to be called again")

type retryAfter struct {
	delay time.Duration
	err   error
}

func (r *retryAfter) Error() string { return fmt.Sprintf("%v (retry after %s)", r.err, r.delay) }
func (r *retryAfter) Unwrap() error { return r.err }

// panicked is the error of a handler that panicked.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// errGoexit is the error of a handler that ended its goroutine.
var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit)")

// errNotCommitted is the error of a handler that returned nil although its CompleteTx came to nothing.
var errNotCommitted = errors.New("the handler returned nil, but the transaction in which it completed the job was not committed")

// outcome says what a handler's return makes of a job. If the job was completed in the handler's own
// transaction, it counts only if that came to nothing.
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
		// It was stopped because its lease could not be renewed, which is no fault of its own.
		return sluice.Settlement{Event: sluice.EventRelease, Reason: "the lease could not be renewed"}
	case errors.As(err, &forGood):
		return sluice.Settlement{Event: sluice.EventBury, Error: textOf(forGood.err), Reason: "permanent error"}
	case r.claim.Releases < maxOutages && sluice.Outage(w.store, err):
		return outage(r.claim, err)
	}
	return failure(r, err, cause, settings)
}

// maxOutages is how often a job may have been handed back until an error that looks like an outage counts as its own: the
// store takes claims and gives them, and only this handler meets it out of reach.
const maxOutages = 100

// maxOutageDelay is how long a job waits at the most that met the store out of reach again and again.
const maxOutageDelay = time.Minute

// outage hands a job back whose handler met the store out of reach: no fault of the handler's, so no attempt. The wait
// grows with each hand-back, so that a job whose own statement brings the database down does not do so without a rest.
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
	var later *retryAfter
	var panic *panicked
	text := textOf(err)
	if errors.Is(cause, ErrTimeout) {
		text = fmt.Sprintf("%v after %s: %s", ErrTimeout, settings.Timeout, text)
	}
	out := sluice.FailureOf(r.claim, settings, text)
	if errors.As(err, &later) && out.Event == sluice.EventRetry {
		out.Delay = later.delay
	}
	if errors.As(err, &panic) {
		out.Stack = string(panic.stack)
	}
	return out
}

// textOf is the text of a handler's error, whose own methods may panic: a nil pointer in an error is
// easily made.
func textOf(err error) (text string) {
	defer func() {
		if value := recover(); value != nil {
			text = fmt.Sprintf("an error of type %T, whose text cannot be had: %v", err, value)
		}
	}()
	return err.Error()
}
