package sluice_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

// door is a store that counts the calls of Admit. The first call waits until the test opens the door.
type door struct {
	sluice.Store
	admits atomic.Int32
	open   chan struct{}
	fails  error // the error of the first call
}

func (d *door) Admit(ctx context.Context, queues []string, act sluice.Act) ([]error, error) {
	if d.admits.Add(1) > 1 || d.open == nil {
		return d.Store.Admit(ctx, queues, act)
	}
	<-d.open
	if d.fails != nil {
		return nil, d.fails
	}
	return d.Store.Admit(ctx, queues, act)
}

// firstJobs makes 64 callers enqueue the first jobs of a queue, which one of them creates. It returns the callers'
// errors.
func firstJobs(t *testing.T, store *door) (errs [64]error) {
	store.Store, store.open = memory.New(memory.Options{}), make(chan struct{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	var callers sync.WaitGroup
	for i := range errs {
		callers.Go(func() {
			_, errs[i] = client.Enqueue(t.Context(), sluice.NewJob{Queue: "new", Payload: []byte("1")})
		})
	}
	synctest.Wait()
	if n := store.admits.Load(); n != 1 {
		t.Errorf("%d callers make the queue at the same time, want one", n)
	}
	close(store.open)
	callers.Wait()
	return errs
}

func TestOneOfManyCallersMakesANewQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := new(door)
		for _, err := range firstJobs(t, store) {
			if err != nil {
				t.Error(err)
			}
		}
		if n := store.admits.Load(); n != 1 {
			t.Errorf("the queue was asked for %d times, want once", n)
		}
	})
}

func TestCallersGoOnWhereTheOneWhoMakesTheirQueueFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failed, broken := 0, errors.New("broken")
		for _, err := range firstJobs(t, &door{fails: broken}) {
			if errors.Is(err, broken) {
				failed++
			} else if err != nil {
				t.Error(err)
			}
		}
		if failed != 1 {
			t.Errorf("%d callers failed, want the one who made it", failed)
		}
	})
}

func TestCallerWhoWaitsForANewQueueMayGiveUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &door{Store: memory.New(memory.Options{}), open: make(chan struct{})}
		client := sluice.NewClient(store, sluice.ClientOptions{})
		job := sluice.NewJob{Queue: "new", Payload: []byte("1")}
		var making sync.WaitGroup
		making.Go(func() {
			if _, err := client.Enqueue(t.Context(), job); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := client.Enqueue(ctx, job); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		close(store.open)
		making.Wait()
	})
}

// asker is a transaction that stores nothing and admits every queue.
type asker struct {
	sluice.Enqueuer
	asked int
}

func (a *asker) Admit(_ context.Context, queues []string, _ sluice.Act) ([]error, error) {
	a.asked++
	return make([]error, len(queues)), nil
}

func (a *asker) Enqueue(_ context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	return make([]sluice.Receipt, len(jobs)), nil
}

func TestTransactionsAskForAQueueThatIsNotStoredOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tx := &asker{Enqueuer: memory.New(memory.Options{})}
		client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
		asks := func(what string, want int) {
			t.Helper()
			for range 3 {
				if _, err := client.Within(tx).Enqueue(t.Context(), sluice.NewJob{Queue: "new", Payload: []byte("1")}); err != nil {
					t.Fatal(err)
				}
			}
			if tx.asked != want {
				t.Errorf("%s: it was asked %d times, want %d", what, tx.asked, want)
			}
		}
		asks("at first", 1)
		time.Sleep(sluice.SettingsInterval)
		asks("after a second", 2)
	})
}
