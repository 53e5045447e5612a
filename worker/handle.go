package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
)

// QueueOptions adjust how a worker serves one queue. The zero value works.
type QueueOptions struct {
	// Slots is how many of the worker's slots the queue may use. Default: all.
	Slots int
}

// Job is a claimed job in the hands of its handler.
type Job[T any] struct {
	// Claim holds everything else that is known of the job, and its raw payload.
	*sluice.Claim
	// Payload is the job's payload as a Go value.
	Payload T

	run *run
}

// Attempt is the number of this attempt, counted from 1.
func (j *Job[T]) Attempt() int { return j.Attempts + 1 }

// SetResult stores a value, as JSON, with the job when the handler returns nil (C-25).
func (j *Job[T]) SetResult(result any) error {
	text, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("result of job %s: %w", j.ID, err)
	}
	j.run.result.Store(&text)
	return nil
}

// SaveCheckpoint stores how far the job has come, as JSON. A later attempt resumes from it: see
// LoadCheckpoint. If the claim is lost it is an ErrLost, and the handler should end (C-50).
func (j *Job[T]) SaveCheckpoint(ctx context.Context, progress any) error {
	text, err := json.Marshal(progress)
	if err != nil {
		return fmt.Errorf("checkpoint of job %s: %w", j.ID, err)
	}
	return j.run.worker.store.SaveCheckpoint(ctx, j.ID, j.Token, text)
}

// LoadCheckpoint reads what an earlier attempt saved. It reports false if none did.
func (j *Job[T]) LoadCheckpoint(progress any) (bool, error) {
	if len(j.Checkpoint) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(j.Checkpoint, progress); err != nil {
		return false, fmt.Errorf("checkpoint of job %s: %w", j.ID, err)
	}
	return true, nil
}

// Handler does a job. If it returns nil, the job is completed. An error is a failed attempt: the
// job is retried after the queue's backoff, or dead after its last attempt; see Snooze, Permanent
// and RetryAfter for the other ways. A handler must be safe to run again (C-46), and should end
// when its context does.
type Handler[T any] func(ctx context.Context, job *Job[T]) error

// Handle makes a worker serve a queue. Queues are served in the order in which they were handled:
// an earlier one takes free slots first. Call it before Run.
func Handle[T any](w *Worker, queue sluice.TypedQueue[T], handler Handler[T], options QueueOptions) {
	if options.Slots <= 0 || options.Slots > w.options.Slots {
		options.Slots = w.options.Slots
	}
	l := &lane{queue: queue.Name(), slots: options.Slots}
	l.hungry.Store(true)
	l.do = func(ctx context.Context, r *run) error {
		payload, err := queue.Decode(r.claim.Payload)
		if err != nil {
			return Permanent(err)
		}
		return handler(ctx, &Job[T]{Claim: r.claim, Payload: payload, run: r})
	}
	w.lanes = append(w.lanes, l)
}

// lane is a queue that the worker serves.
type lane struct {
	queue  string
	do     func(ctx context.Context, r *run) error
	hungry atomic.Bool // it may have jobs to claim

	slots  int       // how many jobs of it may run at once
	taken  int       // how many are claimed; guarded by Worker.mu
	lookAt time.Time // when to look again if nobody says anything; used by the fetching alone
}

// Snooze hands the job back and asks for it again after a while; a negative one is none. No attempt
// is counted.
func Snooze(d time.Duration) error { return &snooze{max(d, 0)} }

type snooze struct{ delay time.Duration }

func (s *snooze) Error() string { return fmt.Sprintf("snoozed for %s", s.delay) }

// Permanent says that the job will never succeed: it is dead at once.
func Permanent(err error) error { return &permanent{err} }

type permanent struct{ err error }

func (p *permanent) Error() string { return "permanent: " + p.err.Error() }
func (p *permanent) Unwrap() error { return p.err }

// RetryAfter says that the attempt failed and when the next one makes sense, instead of the
// queue's backoff; a negative one is at once. It is dead all the same after its last attempt.
func RetryAfter(d time.Duration, err error) error { return &retryAfter{max(d, 0), err} }

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

// outcome says what a handler's return makes of a job.
func (w *Worker) outcome(r *run, err error, cause error, settings sluice.Settings) sluice.Settlement {
	out := sluice.Settlement{ID: r.claim.ID, Token: r.claim.Token, Holder: w.holder.ID}
	if r.claim.SettledInTx() {
		if err == nil {
			err = errors.New("the handler returned nil, but the transaction in which it completed the job was not committed")
		}
		out = sluice.FailureOf(r.claim, settings, err.Error())
		out.InTx = true
		return out
	}
	var snoozed *snooze
	var forGood *permanent
	var later *retryAfter
	var panic *panicked
	switch {
	case err == nil:
		out.Event = sluice.EventComplete
		if result := r.result.Load(); result != nil {
			out.Result = *result
		}
		return out
	case errors.As(err, &snoozed):
		out.Event, out.Delay, out.Reason = sluice.EventRelease, snoozed.delay, "snoozed"
		return out
	case errors.Is(cause, ErrShutdown):
		out.Event, out.Reason = sluice.EventRelease, "worker shut down"
		return out
	case errors.As(err, &forGood):
		out.Event, out.Error, out.Reason = sluice.EventBury, forGood.err.Error(), "permanent error"
		return out
	}
	text := err.Error()
	if errors.Is(cause, ErrTimeout) {
		text = fmt.Sprintf("%v after %s: %s", ErrTimeout, settings.Timeout, text)
	}
	out = sluice.FailureOf(r.claim, settings, text)
	if errors.As(err, &later) && out.Event == sluice.EventRetry {
		out.Delay = later.delay
	}
	if errors.As(err, &panic) {
		out.Stack = string(panic.stack)
	}
	return out
}
