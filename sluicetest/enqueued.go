package sluicetest

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/sluice-queue/sluice"
)

// Job is a stored job with its payload as a Go value.
type Job[T any] struct {
	sluice.Job
	Payload T
}

// Enqueued lists the jobs of a queue in any store, finished ones too, in the order of their enqueue. It ends the test if
// a payload does not fit the type, or if the queue has more than 10,000 jobs.
func Enqueued[T any](t testing.TB, store sluice.Store, queue sluice.TypedQueue[T]) []Job[T] {
	t.Helper()
	const most = 10_000
	client := sluice.NewClient(store, sluice.ClientOptions{})
	page, err := client.Jobs(t.Context(), sluice.JobFilter{Queue: queue.Name(), Limit: most})
	if err != nil {
		t.Fatalf("list the jobs of queue %q: %v", queue.Name(), err)
	}
	if len(page.Jobs) == most {
		t.Fatalf("queue %q has %d jobs or more, too many to list in a test", queue.Name(), most)
	}
	out := make([]Job[T], 0, len(page.Jobs))
	for _, listed := range slices.Backward(page.Jobs) {
		job, err := client.Job(t.Context(), listed.ID) // lists have no payloads
		if err != nil {
			t.Fatalf("read a job of queue %q: %v", queue.Name(), err)
		}
		payload, err := queue.Decode(job.Payload)
		if err != nil {
			t.Fatalf("job %s of queue %q: %v", job.ID, queue.Name(), err)
		}
		out = append(out, Job[T]{job, payload})
	}
	return out
}

// Recorder is a transaction's enqueuer that keeps what was enqueued through it, so that a test can look before the
// commit. Make it with [Record].
type Recorder struct {
	sluice.Enqueuer

	mu   sync.Mutex
	jobs []sluice.NewJob
}

// Record records the jobs that a client enqueues within a transaction:
//
//	recorder := sluicetest.Record(store.InTx(tx))
//	err := shop.Order(ctx, client.Within(recorder), order)
func Record(tx sluice.Enqueuer) *Recorder { return &Recorder{Enqueuer: sluice.GivenEnqueuer(tx)} }

// Enqueue enqueues in the transaction, and records the jobs that are no duplicates.
func (r *Recorder) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	receipts, err := r.Enqueuer.Enqueue(ctx, jobs)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, receipt := range receipts {
		if !receipt.Duplicate && receipt.ID == jobs[i].ID {
			r.jobs = append(r.jobs, jobs[i].NewJob)
		}
	}
	return receipts, err
}

// Jobs returns the recorded jobs in the order of their enqueue.
func (r *Recorder) Jobs() []sluice.NewJob {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.jobs)
}
