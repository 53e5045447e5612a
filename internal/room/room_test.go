package room_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/room"
	"github.com/sluice-queue/sluice/pressure"
)

// queue is a queue whose number of waiting jobs a test sets.
type queue struct {
	waiting, counted atomic.Int32
	takes            time.Duration
	err              error
}

func (q *queue) source() room.Source {
	return room.Source{Waiting: func(_ context.Context, _, _ string, limit int) (int, error) {
		q.counted.Add(1)
		seen := min(int(q.waiting.Load()), limit)
		time.Sleep(q.takes)
		return seen, q.err
	}, Stored: func(context.Context, []sluice.Insert) (map[sluice.ID]bool, error) { return nil, nil }}
}

// enqueue stores n jobs through a room.
func enqueue(t *testing.T, r *room.Room, q *queue, n, limit int) error {
	t.Helper()
	jobs, receipts := make([]sluice.Insert, n), make([]sluice.Receipt, n)
	for i := range jobs {
		jobs[i] = sluice.Insert{NewJob: sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{ID: sluice.NewID()}}, MaxWaiting: limit}
		receipts[i].ID = jobs[i].ID
	}
	stay, err := r.Enter(t.Context(), jobs, q.source())
	if err != nil {
		return err
	}
	q.waiting.Add(int32(n))
	stay.End(jobs, receipts)
	return nil
}

func TestNobodyCountsWhereThereIsNoLimit(t *testing.T) {
	t.Parallel()
	var r room.Room
	q := &queue{}
	if err := enqueue(t, &r, q, 100, 0); err != nil || q.counted.Load() != 0 {
		t.Errorf("%v, counted %d times", err, q.counted.Load())
	}
}

func TestAPlaceThatIsHalfFullIsCountedLessOften(t *testing.T) {
	t.Parallel()
	for waiting, want := range map[int32]int32{0: 2, 450: 2, 700: 3, 970: 5} {
		synctest.Test(t, func(t *testing.T) {
			var r room.Room
			q := &queue{takes: 50 * time.Millisecond}
			q.waiting.Store(waiting)
			for range 9 { // in less than 10 s
				if err := enqueue(t, &r, q, 1, 1000); err != nil {
					t.Fatal(err)
				}
				time.Sleep(1050 * time.Millisecond)
			}
			if n := q.counted.Load(); n != want {
				t.Errorf("with %d of 1,000 waiting: counted %d times, want %d", waiting, n, want)
			}
		})
	}
}

func TestACountIsAtMost250MillisecondsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r room.Room
		q := &queue{takes: time.Millisecond}
		for range 1000 {
			if err := enqueue(t, &r, q, 1, 10_000); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if n := q.counted.Load(); n != 4 {
			t.Errorf("counted %d times in a second, want 4", n)
		}
		q.waiting.Store(10_000) // other processes have filled the queue
		time.Sleep(250 * time.Millisecond)
		if err := enqueue(t, &r, q, 1, 10_000); !errors.Is(err, pressure.ErrFull) {
			t.Errorf("a full queue takes jobs: %v", err)
		}
	})
}

func TestCountingTakesATwentiethOfTheTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r room.Room
		q := &queue{takes: 100 * time.Millisecond}
		q.waiting.Store(50)
		began := time.Now()
		for time.Since(began) < 20*time.Second {
			if err := enqueue(t, &r, q, 1, 50); !errors.Is(err, pressure.ErrFull) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if n := q.counted.Load(); n > 11 {
			t.Errorf("counted %d times in 20 s", n)
		}
		q.waiting.Store(0)
		time.Sleep(2 * time.Second)
		if err := enqueue(t, &r, q, 1, 50); err != nil {
			t.Errorf("there is room again: %v", err)
		}
	})
}

func TestManyCallersOfOneProcessKeepTheLimit(t *testing.T) {
	t.Parallel()
	var r room.Room
	q := &queue{}
	var wait sync.WaitGroup
	for range 64 {
		wait.Go(func() {
			for range 50 {
				if err := enqueue(t, &r, q, 1, 500); err != nil && !errors.Is(err, pressure.ErrFull) {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if n := q.waiting.Load(); n > 500 || n < 500-64 {
		t.Errorf("%d jobs wait, want 500", n)
	}
}

func TestACountThatFailsFailsTheEnqueue(t *testing.T) {
	t.Parallel()
	var r room.Room
	q := &queue{err: sluice.ErrUnavailable}
	if err := enqueue(t, &r, q, 1, 10); !errors.Is(err, sluice.ErrUnavailable) {
		t.Error(err)
	}
	q.err = nil
	if err := enqueue(t, &r, q, 10, 10); err != nil {
		t.Error(err)
	}
	if err := enqueue(t, &r, q, 1, 10); !errors.Is(err, pressure.ErrFull) || r.Counts()["mail"].Refused != 1 {
		t.Error(err, r.Counts())
	}
}
