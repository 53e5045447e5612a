package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// TestOnceFindsJobsThatAnotherProcessPutBehindTheMarks has another process enqueue a job that was due long ago, while the
// last job runs. The claims of this process begin behind that place for a moment.
func TestOnceFindsJobsThatAnotherProcessPutBehindTheMarks(t *testing.T) {
	t.Parallel()
	url := migrated.Copy(t)
	store, other := openStore(t, url), openStore(t, url)
	enqueueOf(t, store, 3, sluice.EnqueueOptions{}, "")
	w := worker.New(store, worker.Options{Slots: 1})
	ran := 0
	worker.Handle(w, sluice.QueueOf[int]("q"), func(context.Context, *worker.Job[int]) error {
		if ran++; ran == 3 {
			enqueueOf(t, other, 1, sluice.EnqueueOptions{DueAt: time.Now().Add(-time.Hour)}, "")
		}
		return nil
	}, worker.QueueOptions{})
	if n, err := w.Once(t.Context()); err != nil || n != 4 {
		t.Errorf("ran %d jobs, %v; want 4", n, err)
	}
}

// TestOnceWaitsForAnotherClaim has the claim of another process hold the lock of the queue's limits for a moment.
func TestOnceWaitsForAnotherClaim(t *testing.T) {
	t.Parallel()
	store := openLimited(t, 5, 2)
	unlock := lockFlows(t, store, "q")
	w := worker.New(store, worker.Options{Slots: 1})
	worker.Handle(w, sluice.QueueOf[int]("q"), func(context.Context, *worker.Job[int]) error { return nil }, worker.QueueOptions{})
	time.AfterFunc(100*time.Millisecond, unlock)
	if n, err := w.Once(t.Context()); err != nil || n != 2 {
		t.Errorf("ran %d jobs, %v; want 2", n, err)
	}
}
