package worker

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// coarseTimeout is the shortest timeout that keep enforces in its rounds. Each shorter timeout gets a timer, which
// costs a tenth of what an empty job costs its worker.
const coarseTimeout = time.Minute

// attemptContext is a context with a deadline that keep enforces instead of a timer.
type attemptContext struct {
	context.Context
	deadline time.Time
}

// Deadline returns the instant at which the attempt exceeds its timeout.
func (c attemptContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Err returns context.DeadlineExceeded after the deadline, like contexts of the standard library.
func (c attemptContext) Err() error {
	err := c.Context.Err()
	if err != nil && errors.Is(context.Cause(c.Context), ErrTimeout) {
		return context.DeadlineExceeded
	}
	return err
}

// timeout returns the timeout of the attempt: the job's own, or that of the handler or the queue. 0: none.
func (r *run) timeout() time.Duration { return cmp.Or(r.claim.Timeout, r.queue.Settings.Timeout) }

// within gives a run's context a deadline.
func (r *run) within(timeout time.Duration, begun time.Time) (context.Context, context.CancelFunc) {
	switch {
	case timeout <= 0:
		return r.ctx, func() {}
	case timeout < coarseTimeout:
		return context.WithDeadlineCause(r.ctx, begun.Add(timeout), ErrTimeout)
	}
	return attemptContext{r.ctx, begun.Add(timeout)}, func() {}
}

// timeOut ends the attempts that exceeded their timeout and have no timer.
func timeOut(runs []*run) {
	for _, r := range runs {
		if over, limited := r.overtime(); limited && over >= 0 && r.timeout() >= coarseTimeout {
			r.cancel(ErrTimeout)
		}
	}
}

// overtime returns for how long a handler has exceeded its timeout, negative before the timeout. The bool is
// false if the handler has not begun or has no timeout. Setting the wall clock does not change it.
func (r *run) overtime() (over time.Duration, limited bool) {
	begun, timeout := r.begun.Load(), r.timeout()
	if begun == nil || timeout == 0 {
		return 0, false
	}
	return time.Since(*begun) - timeout, true
}
