package worker_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

// mute is a store that loses every signal of a job, and only passes on whether it hears signals. It counts the calls of
// a worker.
type mute struct {
	sluice.Store
	deaf                  bool // the store does not even say that it hears signals
	say                   atomic.Pointer[func(sluice.Signal)]
	claims, looks, queues atomic.Int64
	alone                 atomic.Int64 // claims from one queue alone
	settings              atomic.Int64
}

// Unwrap returns the decorated store.
func (m *mute) Unwrap() sluice.Store { return m.Store }

func (m *mute) Watch(ctx context.Context, signal func(sluice.Signal)) error {
	m.say.Store(&signal)
	return m.Store.Watch(ctx, func(s sluice.Signal) {
		if s.Hearing != "" && !m.deaf {
			signal(s)
		}
	})
}

func (m *mute) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	m.claims.Add(1)
	if len(request.Queues) == 0 {
		m.alone.Add(1)
	}
	return m.Store.Claim(ctx, request)
}

func (m *mute) NextDue(ctx context.Context, queues []string) (map[string]time.Duration, error) {
	m.looks.Add(1)
	m.queues.Add(int64(len(queues)))
	return m.Store.NextDue(ctx, queues)
}

func (m *mute) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	m.settings.Add(1)
	return m.Store.Queues(ctx, filter)
}

// serveMute runs a worker of many queues. The channel gets the time of each start.
func serveMute(t *testing.T, m *mute, queues int) <-chan time.Time {
	t.Helper()
	started := make(chan time.Time, 100)
	w := worker.New(m, worker.Options{Slots: 100, Logger: quiet})
	for n := range queues {
		worker.Handle(w, sluice.QueueOf[int](muteQueue(n)), func(context.Context, *worker.Job[int]) error {
			started <- time.Now()
			return nil
		}, worker.QueueOptions{})
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return started
}

func muteQueue(n int) string { return fmt.Sprintf("queue-%d", n) }

// TestAnIdleWorkerAsksLittle counts the calls of an idle worker of ten queues within 1 min. It claims from all queues
// together now and then, less often if the store hears signals. It reads the settings twice.
func TestAnIdleWorkerAsksLittle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		deaf bool
		want int64 // claims within 1 min
	}{{"hearing", false, 7}, {"deaf", true, 60}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &mute{Store: memory.New(memory.Options{}), deaf: c.deaf}
				serveMute(t, m, 10)
				time.Sleep(10 * time.Second)
				claims, settings, looks, queues := m.claims.Load(), m.settings.Load(), m.looks.Load(), m.queues.Load()
				time.Sleep(time.Minute)
				if n := m.claims.Load() - claims; n > 0 {
					t.Errorf("%d claims, want none", n)
				}
				if n := m.settings.Load() - settings; n > 1 {
					t.Errorf("%d readings of settings, want at most 1", n)
				}
				n := m.looks.Load() - looks
				if n < c.want-1 || n > c.want+1 {
					t.Errorf("%d looks, want %d", n, c.want)
				}
				if of := m.queues.Load() - queues; of != 10*n {
					t.Errorf("%d looks at %d queues, want at all ten", n, of)
				}
			})
		})
	}
}

// TestWhatNobodySignalsIsFound loses every signal of a job. The worker must find jobs that are due at once or later,
// after a pause, or by a limit.
func TestWhatNobodySignalsIsFound(t *testing.T) {
	t.Parallel()
	const look = 6*time.Second + 20*time.Millisecond // 6 times the default of Options.Poll, and the rests between claims
	for _, c := range []struct {
		name     string
		settings func(*sluice.Settings, time.Time)
		due      time.Duration
		most     time.Duration
	}{
		{name: "due at once", most: look},
		{name: "due before the next look", due: time.Second, most: look},
		{name: "due later", due: time.Minute, most: time.Minute + 5*time.Millisecond},
		{name: "a pause that ends", most: 20*time.Second + 5*time.Millisecond, settings: func(s *sluice.Settings, now time.Time) {
			s.Paused, s.PausedUntil = true, now.Add(20*time.Second)
		}},
		{name: "turns of tenants", most: look, settings: func(s *sluice.Settings, _ time.Time) { s.Fair = true }},
		{name: "a lead", due: time.Minute, most: time.Minute + 5*time.Millisecond, settings: func(s *sluice.Settings, _ time.Time) {
			s.ClaimAhead = 10 * time.Second
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &mute{Store: memory.New(memory.Options{})}
				started := serveMute(t, m, 10)
				client := sluice.NewClient(m.Store, sluice.ClientOptions{})
				time.Sleep(10 * time.Second)
				if c.settings != nil {
					settings := sluice.DefaultSettings()
					c.settings(&settings, time.Now())
					if _, err := client.EnsureQueue(t.Context(), muteQueue(3), settings, sluice.Act{By: "test"}); err != nil {
						t.Fatal(err)
					}
				}
				at := time.Now()
				if _, err := sluice.QueueOf[int](muteQueue(3)).Enqueue(t.Context(), client, 7, sluice.EnqueueOptions{Delay: c.due}); err != nil {
					t.Fatal(err)
				}
				if took := (<-started).Sub(at); took < c.due || took > c.most {
					t.Errorf("it started after %s, want within %s", took, c.most)
				}
			})
		})
	}
}

// TestAStoreThatHearsNoMoreIsLookedAtMoreOften counts claims while the store says that it hears signals, and while it
// says that it does not.
func TestAStoreThatHearsNoMoreIsLookedAtMoreOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &mute{Store: memory.New(memory.Options{})}
		serveMute(t, m, 2)
		time.Sleep(10 * time.Second)
		for _, c := range []struct {
			hears sluice.Hearing
			want  int64
		}{{sluice.HearsLess, 60}, {sluice.HearsAll, 8}} {
			before := m.looks.Load()
			(*m.say.Load())(sluice.Signal{Hearing: c.hears})
			synctest.Wait()
			if n := m.looks.Load() - before; n != 1 {
				t.Errorf("it hears %s: %d looks at once, want 1", c.hears, n)
			}
			time.Sleep(time.Minute)
			if n := m.looks.Load() - before; n < c.want || n > c.want+2 {
				t.Errorf("it hears %s: %d looks within a minute, want %d", c.hears, n, c.want)
			}
		}
	})
}

// TestHungryQueuesAreClaimedFromTogether stores jobs in many queues at once, and counts the claims. A few claims must
// take jobs of many queues each. A queue with limits needs claims of its own.
func TestHungryQueuesAreClaimedFromTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		limit         int
		least, atMost int64
	}{{"plain", 0, 1, 6}, {"limited", 100, 50, 130}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &mute{Store: memory.New(memory.Options{})}
				client := sluice.NewClient(m.Store, sluice.ClientOptions{})
				settings := sluice.DefaultSettings()
				settings.Concurrency = c.limit
				var jobs []sluice.NewJob
				for n := range 50 {
					if _, err := client.EnsureQueue(t.Context(), muteQueue(n), settings, sluice.Act{By: "test"}); err != nil {
						t.Fatal(err)
					}
					jobs = append(jobs, sluice.NewJob{Queue: muteQueue(n), Payload: []byte("7")})
				}
				started := serveMute(t, m, 50)
				time.Sleep(10 * time.Second)
				before := m.claims.Load()
				if _, err := client.EnqueueMany(t.Context(), jobs); err != nil {
					t.Fatal(err)
				}
				for range jobs {
					<-started
				}
				time.Sleep(100 * time.Millisecond)
				if n := m.claims.Load() - before; n < c.least || n > c.atMost {
					t.Errorf("%d claims for one job in each of 50 queues, want %d to %d", n, c.least, c.atMost)
				}
			})
		})
	}
}
