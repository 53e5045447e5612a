package upkeep_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
)

// openBatch opens a batch that calls back in the queue `done`, with n jobs in the queue `q`, and closes it.
func openBatch(t *testing.T, store sluice.Store, n int) batch.Batch {
	t.Helper()
	b, err := batch.Open(t.Context(), store, batch.Batch{Callbacks: batch.Callbacks{OnComplete: &batch.Callback{Queue: "done"}}}, operator)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		job := sluice.NewJob{Queue: "q", Payload: []byte("{}"), EnqueueOptions: sluice.EnqueueOptions{Batch: b.ID}}
		if _, err := sluice.NewClient(store, sluice.ClientOptions{}).Enqueue(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Close(t.Context(), store, b.ID, operator); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestACallbackFollowsTheLastJobWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = upkeep.New(store, upkeep.Options{}).Run(ctx) }()
		time.Sleep(10 * time.Second)
		openBatch(t, store, 1)
		time.Sleep(10 * time.Second)
		if jobs := jobsOf(t, store, "done"); len(jobs) != 0 {
			t.Fatalf("callbacks before the last job: %+v", jobs)
		}
		ended := time.Now()
		if errs, err := store.Cancel(t.Context(), []sluice.ID{jobsOf(t, store, "q")[0].ID}, operator); err != nil || errs[0] != nil {
			t.Fatal(errs, err)
		}
		time.Sleep(time.Second)
		jobs := jobsOf(t, store, "done")
		if len(jobs) != 1 || jobs[0].CreatedAt.Sub(ended) > 300*time.Millisecond {
			t.Errorf("callbacks: %+v, want one within 300 ms of %s", jobs, ended)
		}
	})
}

func TestTwoUpkeepsEnqueueACallbackOnceThroughAFailover(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		first, cancel := context.WithCancel(t.Context())
		defer cancel()
		second, cancelSecond := context.WithCancel(t.Context())
		defer cancelSecond()
		go func() { _ = upkeep.New(store, upkeep.Options{}).Run(first) }()
		time.Sleep(500 * time.Millisecond)
		go func() { _ = upkeep.New(store, upkeep.Options{}).Run(second) }()
		for n := range 20 {
			openBatch(t, store, 0)
			if n == 10 {
				cancel()
			}
			time.Sleep(2 * time.Second)
		}
		time.Sleep(time.Minute)
		if jobs := jobsOf(t, store, "done"); len(jobs) != 20 {
			t.Errorf("%d callbacks, want 20", len(jobs))
		}
	})
}

func TestOnceAdvancesAndForgetsBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		b := openBatch(t, store, 0)
		keeper := upkeep.New(store, upkeep.Options{})
		done, err := keeper.Once(t.Context(), true)
		if err != nil || done.Called != 1 {
			t.Errorf("called %d, %v, want 1", done.Called, err)
		}
		time.Sleep(29 * 24 * time.Hour)
		if _, err := keeper.Once(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if _, err := batch.Read(t.Context(), store, b.ID); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * 24 * time.Hour)
		if _, err := keeper.Once(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if left, err := batch.List(t.Context(), store, batch.Filter{}); err != nil || len(left) != 0 {
			t.Errorf("left %+v, %v, want none", left, err)
		}
	})
}
