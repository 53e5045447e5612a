// Package pressure says how full queues are, and which error an enqueue into a full queue returns.
//
// A queue is full if as many jobs wait in it as its setting max_waiting allows, a tenant if as many of its jobs wait
// as tenant_max_waiting allows. Jobs wait while they are queued, due or not. Then an enqueue stores nothing and returns
// a [*FullError]; with the setting shed it cancels waiting jobs of a lower priority first, and stores the new ones.
//
// Begin with [FullError] and [Of]. [Store] is the port that SQLite, PostgreSQL and memory implement. Read next:
// docs/guide/back-pressure.md, which says how exact the limits are.
package pressure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

// ErrFull says that a queue, or a tenant in it, has as many waiting jobs as it may have. The error is a [*FullError].
var ErrFull = errors.New("too many jobs wait")

// FullError says that an enqueue stored nothing, because too many jobs would wait. It is an [ErrFull]. Each job of the
// call has this error.
type FullError struct {
	// Queue is the full queue. Tenant is the full tenant in it. Empty: the queue itself is full.
	Queue  string
	Tenant string
	// Waiting is how many jobs wait, as far as this process knows. Limit is how many may wait. Jobs is how many the call
	// had for the queue, or the tenant.
	Waiting int
	Limit   int
	Jobs    int
	// RetryAfter is how long to wait before the next try. It is 0 if the jobs exceed the limit even in an empty queue:
	// split the call.
	RetryAfter time.Duration
}

// Error returns the numbers, and what to do.
func (e *FullError) Error() string {
	whose, setting := fmt.Sprintf("queue %q", e.Queue), "max_waiting"
	if e.Tenant != "" {
		whose, setting = fmt.Sprintf("tenant %q in queue %q", e.Tenant, e.Queue), "tenant_max_waiting"
	}
	if e.RetryAfter == 0 {
		return fmt.Sprintf("%s is full: %d jobs of one call are more than its %s of %d; split them", whose, e.Jobs, setting, e.Limit)
	}
	return fmt.Sprintf("%s is full: %d jobs wait, and its %s is %d; try again after %s, or raise the limit with `sluice settings set %s %s=%d --reason …`",
		whose, e.Waiting, setting, e.Limit, e.RetryAfter.Round(time.Millisecond), e.Queue, setting, 2*e.Limit)
}

// Is makes a FullError an [ErrFull].
func (e *FullError) Is(target error) bool { return target == ErrFull }

// Counts are the jobs that one open store has refused and shed in a queue, since it was opened.
type Counts struct {
	// Refused counts jobs that the store did not take because the queue or the tenant was full.
	Refused int
	// Shed counts waiting jobs that the store cancelled to make room.
	Shed int
}

// Level is how full a queue is.
type Level struct {
	// Waiting is how many jobs wait. It is at most Limit.
	Waiting int
	// Limit is the queue's max_waiting. 0: none, and nobody counted.
	Limit int
}

// Used returns Waiting as a share of Limit, 0 to 1. Without a limit it returns 0.
func (l Level) Used() float64 { return float64(l.Waiting) / float64(max(l.Limit, 1)) }

// Full reports whether the queue is full.
func (l Level) Full() bool { return l.Limit > 0 && l.Waiting >= l.Limit }

// Of counts the waiting jobs of a queue up to its max_waiting. Without that limit it counts nothing.
func Of(ctx context.Context, store sluice.Store, queue sluice.Queue) (Level, error) {
	limit := queue.Settings.MaxWaiting
	if limit == 0 {
		return Level{}, nil
	}
	waiting, err := Given(store).WaitingJobs(ctx, queue.Name, "", limit)
	if err != nil {
		return Level{}, fmt.Errorf("count the waiting jobs of queue %q: %w", queue.Name, err)
	}
	return Level{Waiting: waiting, Limit: limit}, nil
}
