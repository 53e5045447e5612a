package upkeep_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
)

// slowToCount is a store whose counts of waves take a while.
type slowToCount struct {
	sluice.Store
	takes  time.Duration
	counts atomic.Int64
}

// Unwrap returns the decorated store.
func (s *slowToCount) Unwrap() sluice.Store { return s.Store }

func (s *slowToCount) CountWaves(ctx context.Context) (forecast.Count, error) {
	s.counts.Add(1)
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return forecast.Count{}, ctx.Err()
	}
	count, err := forecast.Given(s.Store).CountWaves(ctx)
	count.Took = s.takes
	return count, err
}

// Waves returns how long counting took.
func (s *slowToCount) Waves(ctx context.Context, filter forecast.Filter) (forecast.Counts, error) {
	found, err := forecast.Given(s.Store).Waves(ctx, filter)
	for i := range found.Queues {
		found.Queues[i].Took = s.takes
	}
	return found, err
}

func TestWavesAreCountedButNotAllTheTime(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		least int64
		most  int64
	}{
		"quick counts come every ten seconds":      {time.Millisecond, 55, 62},
		"slow ones take a fiftieth of the time":    {2 * time.Second, 5, 7},
		"and hold up nothing else, however slowly": {time.Hour, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inFarm(t, func(f *farm) {
				store := &slowToCount{Store: f.store, takes: c.takes}
				f.add(sluice.EnqueueOptions{Delay: time.Hour})
				expires := f.add(sluice.EnqueueOptions{ExpiresAt: time.Now().Add(time.Minute)})
				ctx, stop := context.WithCancel(f.Context())
				ended := make(chan error)
				for range 2 { // the second stands by
					go func() { ended <- upkeep.New(store, upkeep.Options{Logger: quiet}).Run(ctx) }()
					time.Sleep(5 * time.Second)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if got := store.counts.Load(); got < c.least || got > c.most {
					f.Errorf("counted %d times, want %d to %d", got, c.least, c.most)
				}
				if state := f.job(expires).State; state != sluice.StateCancelled {
					f.Errorf("the job that expired is %s", state)
				}
				stop()
				for range 2 {
					if err := <-ended; err != nil {
						f.Error(err)
					}
				}
			})
		})
	}
}

func TestWavesAreCountedOnAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var back atomic.Int64
		store := &slowToCount{takes: time.Millisecond, Store: memory.New(memory.Options{
			Now: func() time.Time { return time.Now().Add(-time.Duration(back.Load())) },
		})}
		client := sluice.NewClient(store, sluice.ClientOptions{})
		if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1")}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- upkeep.New(store, upkeep.Options{Logger: quiet}).Run(ctx) }()
		time.Sleep(time.Minute)
		before := store.counts.Load()
		back.Store(int64(2 * time.Hour))
		time.Sleep(time.Minute)
		if more := store.counts.Load() - before; more < 4 {
			t.Errorf("%d counts in the minute after the clock was set back, want one every ten seconds", more)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
