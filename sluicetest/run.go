package sluicetest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// Given describes the job and the attempt of [Run]. The zero value is the first attempt at a job without options.
type Given struct {
	// Options are those of the job, such as its tenant and labels.
	Options sluice.EnqueueOptions
	// Attempt is the number of the attempt: the attempts before have failed. Default 1.
	Attempt int
	// Checkpoint is what an earlier attempt saved. Default: none.
	Checkpoint any
	// Settings are those of the queue. Default: sluice.DefaultSettings, without jitter in the backoff.
	Settings func(*sluice.Settings)
	// Handler are the options of the handler.
	Handler worker.QueueOptions
	// Fault breaks the attempt. Default: none.
	Fault Fault
}

// Outcome is how a job stands after the attempt of [Run].
type Outcome struct {
	// Job has the new state, the stored result, checkpoint and error.
	sluice.Job
	// Err is the error of the handler itself. A panic is a *worker.PanicError.
	Err error
	// RetryIn is how long a job that waits again must wait.
	RetryIn time.Duration
}

// madeUp is the queue of the jobs of Run.
const madeUp = "sluicetest"

// Run runs a handler once on a made-up job, in a store of its own, and returns how the job stands then.
func Run[T any](t testing.TB, handler worker.Handler[T], payload T, given Given) Outcome {
	t.Helper()
	b := New(t, Options{})
	queue := sluice.QueueOf[T](madeUp)
	b.makeQueue(given.Settings)
	receipt, err := queue.Enqueue(t.Context(), b.Client, payload, given.Options)
	if err != nil {
		t.Fatalf("enqueue the made-up job: %v", err)
	}
	b.waitUntilDue(receipt.ID)
	b.failBefore(given)
	var out Outcome
	worker.Handle(b.Worker, queue, func(ctx context.Context, job *worker.Job[T]) (err error) {
		defer func() {
			out.Err = err
			if value := recover(); value != nil {
				out.Err = &worker.PanicError{Value: value}
				panic(value)
			}
		}()
		return handler(ctx, job)
	}, given.Handler)
	b.Next(given.Fault)
	began := b.Now()
	ctx, stop := context.WithCancel(t.Context())
	b.ended = stop // a job that waits again may be due at once
	if ran, err := b.Worker.Once(ctx); err != nil || ran == 0 {
		t.Fatalf("the made-up job did not run: %v", err)
	}
	if out.Job, err = b.Client.Job(t.Context(), receipt.ID); err != nil {
		t.Fatalf("read the made-up job: %v", err)
	}
	if out.State == sluice.StateQueued {
		out.RetryIn = max(0, out.DueAt.Sub(began))
	}
	return out
}

// waitUntilDue moves the clock to the instant at which a job falls due.
func (b *Bench) waitUntilDue(id sluice.ID) {
	b.t.Helper()
	job, err := b.Client.Job(b.t.Context(), id)
	if err != nil {
		b.t.Fatalf("read the made-up job: %v", err)
	}
	if job.DueAt.After(b.Now()) {
		b.moveTo(job.DueAt)
	}
}

// makeQueue makes the queue of the made-up job.
func (b *Bench) makeQueue(change func(*sluice.Settings)) {
	b.t.Helper()
	settings := sluice.DefaultSettings()
	settings.Backoff.Jitter = 0
	if change != nil {
		change(&settings)
	}
	if _, err := b.Client.EnsureQueue(b.t.Context(), madeUp, settings, sluice.Act{By: "sluicetest"}); err != nil {
		b.t.Fatalf("make the queue of the made-up job: %v", err)
	}
}

// failBefore fails the attempts before the one that is wanted, and saves the checkpoint.
func (b *Bench) failBefore(given Given) {
	b.t.Helper()
	var checkpoint json.RawMessage
	if given.Checkpoint != nil {
		text, err := json.Marshal(given.Checkpoint)
		if err != nil {
			b.t.Fatalf("the checkpoint cannot be written as JSON: %v", err)
		}
		checkpoint = text
	}
	for range given.Attempt - 1 {
		b.hold(checkpoint, sluice.Settlement{Event: sluice.EventRetry, Error: "an earlier attempt"})
	}
	if given.Attempt <= 1 && checkpoint != nil {
		b.hold(checkpoint, sluice.Settlement{Event: sluice.EventRelease, Reason: "an earlier attempt"})
	}
}

// hold claims the made-up job, saves the checkpoint, and settles the job so that it is due again.
func (b *Bench) hold(checkpoint json.RawMessage, how sluice.Settlement) {
	b.t.Helper()
	ctx := b.t.Context()
	claimed, err := b.Store.Claim(ctx, sluice.ClaimRequest{Queue: madeUp, Limit: 1, Holder: "sluicetest", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 1 {
		b.t.Fatalf("claim the made-up job: %d jobs, %v", len(claimed.Jobs), err)
	}
	job := claimed.Jobs[0]
	if checkpoint != nil {
		if err := b.Store.SaveCheckpoint(ctx, job.ID, job.Token, checkpoint); err != nil {
			b.t.Fatalf("save the checkpoint: %v", err)
		}
	}
	how.ID, how.Token, how.Holder, how.Claim = job.ID, job.Token, job.Holder, job
	if errs, err := b.Store.Settle(ctx, []sluice.Settlement{how}); err != nil || errs[0] != nil {
		b.t.Fatalf("settle the made-up job: %v, %v", errs, err)
	}
}
