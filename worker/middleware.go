package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

// Middleware wraps every call of a handler. It may change the context, measure the call, and change the error. It
// calls next once to run the handler, or not at all to end the attempt by its own error. job.Payload is the handler's
// payload as a Go value: use a type switch, or job.Queue, to treat kinds of jobs apart.
//
// The attempt begins with the middleware, so the time that a middleware takes counts against the timeout. A panic of
// the handler passes through the middleware.
type Middleware func(ctx context.Context, job *Job[any], next func(context.Context) error) error

// wrapped calls the handler within the middleware, the first outermost.
func wrapped(around []Middleware, ctx context.Context, job *Job[any], handler func(context.Context) error) error {
	if len(around) == 0 {
		return handler(ctx)
	}
	return around[0](ctx, job, func(ctx context.Context) error {
		return wrapped(around[1:], ctx, job, handler)
	})
}

// Failure is a failed attempt, for [Options].OnFailure.
type Failure struct {
	// Claim holds all facts about the job. Claim.Attempts counts the failed attempts before this one.
	*sluice.Claim
	// Err is the handler's error as it is: nothing is removed from it. A panic is a [*PanicError], a timeout an
	// [ErrTimeout].
	Err error
	// Dead says that the job is dead. Otherwise it is tried again after RetryIn.
	Dead    bool
	RetryIn time.Duration
	// Took is how long the handler ran.
	Took time.Duration
}

// PanicError is the error of a handler that panicked.
type PanicError struct {
	// Value is the value of the panic.
	Value any
	// Stack is the stack of the goroutine that panicked.
	Stack []byte
}

// Error returns the value of the panic.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// hookTime limits one call of OnFailure, by its context, and how long an outcome waits for Backoff.
const hookTime = 10 * time.Second

// failed calls OnFailure if the settlement is a failed attempt. The context keeps its values, such as a trace, but not
// its end.
func (w *Worker) failed(ctx context.Context, r *run, err error, s sluice.Settlement) {
	if w.options.OnFailure == nil || s.Event != sluice.EventRetry && s.Event != sluice.EventBury {
		return
	}
	if errors.Is(context.Cause(ctx), ErrTimeout) && !errors.Is(err, ErrTimeout) {
		err = fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookTime)
	defer cancel()
	<-w.guard("OnFailure", r.claim, func() {
		w.options.OnFailure(ctx, Failure{
			Claim: r.claim, Err: err, Dead: s.Event == sluice.EventBury, RetryIn: s.Delay, Took: time.Since(r.since()),
		})
	})
}

// guard calls a function that the program gave to the worker, and closes the channel when the function has ended. guard
// logs a panic of the function and stops it there, so the attempt gets its outcome all the same. The function has a
// goroutine of its own, because it may end that, such as by t.FailNow.
func (w *Worker) guard(what string, c *sluice.Claim, call func()) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			if value := recover(); value != nil {
				w.log.EmitJob(event.HookPanicked, c, "what", what, "error", fmt.Errorf("panic: %v", value))
			}
		}()
		call()
	}()
	return ended
}

// backoff asks the program's Backoff for the wait after a failed attempt. If it gives none within hookTime, the wait is
// otherwise: the job must have its outcome, also when the worker ends.
func (r *run) backoff(err error, otherwise time.Duration) time.Duration {
	given := make(chan time.Duration, 1)
	ended := r.worker.guard("Backoff", r.claim, func() {
		given <- max(0, r.servedQueue.options.Backoff(r.claim.Attempts+1, err))
	})
	timer := time.NewTimer(hookTime)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		r.worker.log.EmitJob(event.HookPanicked, r.claim, "what", "Backoff", "error", fmt.Errorf("it has not returned within %s", hookTime))
	}
	select {
	case wait := <-given:
		return wait
	default:
		return otherwise
	}
}
