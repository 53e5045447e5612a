package sluicetest

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// Fault breaks one attempt of a handler; see [Bench.Next] and [Given]. The zero value breaks nothing.
type Fault struct {
	meet func(b *Bench, ctx context.Context, job *worker.Job[any], next func(context.Context) error) error
}

// Fails ends the attempt by an error, without a call of the handler. The error may be a snooze or a permanent one.
func Fails(err error) Fault {
	return Fault{func(*Bench, context.Context, *worker.Job[any], func(context.Context) error) error { return err }}
}

// Panics ends the attempt by a panic, without a call of the handler.
func Panics(value any) Fault {
	return Fault{func(*Bench, context.Context, *worker.Job[any], func(context.Context) error) error { panic(value) }}
}

// TimesOut calls the handler with a context that has ended by [worker.ErrTimeout]. The attempt counts as failed.
func TimesOut() Fault {
	return Fault{func(_ *Bench, ctx context.Context, _ *worker.Job[any], next func(context.Context) error) error {
		ctx, stop := context.WithDeadlineCause(ctx, time.Unix(0, 0), worker.ErrTimeout)
		defer stop()
		if err := next(ctx); err != nil {
			return fmt.Errorf("%w: %w", worker.ErrTimeout, err)
		}
		return nil // the handler was done in time after all
	}}
}

// LosesLease ends the job's lease before the handler is called, as if the process had stood still. The job waits again,
// the handler's context has ended by [sluice.ErrLost], and the outcome of the attempt is refused.
func LosesLease() Fault {
	return Fault{func(b *Bench, ctx context.Context, job *worker.Job[any], next func(context.Context) error) error {
		queue, err := b.Client.Queue(ctx, job.Queue)
		if err != nil {
			return err
		}
		b.moveTo(b.Now().Add(queue.Settings.Lease + time.Second))
		if _, err := b.Store.Recover(ctx, job.Queue, 1, "sluicetest"); err != nil {
			return err
		}
		return nextEnded(ctx, sluice.ErrLost, next)
	}}
}

// IsCancelled cancels the job before the handler is called. The handler's context has ended by [sluice.ErrCancelled], and
// the job stays cancelled whatever the handler returns.
func IsCancelled() Fault {
	return Fault{func(b *Bench, ctx context.Context, job *worker.Job[any], next func(context.Context) error) error {
		if err := b.Client.Cancel(ctx, []sluice.ID{job.ID}, sluice.Act{By: "sluicetest", Reason: "a fault"}); err != nil {
			return err
		}
		return nextEnded(ctx, sluice.ErrCancelled, next)
	}}
}

// nextEnded calls the handler with a context that has ended.
func nextEnded(ctx context.Context, cause error, next func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	stop(cause)
	return next(ctx)
}
