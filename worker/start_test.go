package worker_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

// otherClock is a store whose clock differs from the processes' clock, and whose answers take a while.
type otherClock struct {
	sluice.Store
	skew        atomic.Int64
	there, back time.Duration // how long a call takes before and after the store reads its clock
}

// Unwrap returns the decorated store.
func (o *otherClock) Unwrap() sluice.Store { return o.Store }

func newOtherClock(skew, there, back time.Duration) *otherClock {
	o := &otherClock{there: there, back: back}
	o.skew.Store(int64(skew))
	o.Store = memory.New(memory.Options{Now: o.now})
	return o
}

func (o *otherClock) now() time.Time {
	return time.Now().Add(time.Duration(o.skew.Load())).UTC().Truncate(time.Microsecond)
}

func (o *otherClock) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	time.Sleep(o.there)
	defer time.Sleep(o.back)
	return o.Store.Claim(ctx, request)
}

func (o *otherClock) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	time.Sleep(o.there)
	defer time.Sleep(o.back)
	return o.Store.Queues(ctx, filter)
}

// use makes the shop use another store.
func (s *shop) use(store sluice.Store) {
	s.store, s.client = store, sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})
}

func TestJobThatIsClaimedAheadStartsWhenItIsDueByTheStoresClock(t *testing.T) {
	for name, c := range map[string]struct {
		skew, there, back, set time.Duration
	}{
		"one clock":                      {},
		"a store a day ahead":            {skew: 24 * time.Hour},
		"a store a day behind":           {skew: -24 * time.Hour},
		"slow to ask":                    {there: 2 * time.Second},
		"slow to answer":                 {skew: time.Hour, back: 2 * time.Second},
		"a clock that is set back":       {set: -time.Minute},
		"a clock that is set ahead":      {set: time.Minute},
		"set back, and slow both ways":   {set: -time.Minute, there: time.Second, back: time.Second},
		"a store a day behind, set back": {skew: -24 * time.Hour, set: -10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				store := newOtherClock(c.skew, c.there, c.back)
				s.use(store)
				s.settings(func(q *sluice.Settings) { q.ClaimAhead = 5 * time.Minute })
				id := s.add(sluice.EnqueueOptions{Delay: 10 * time.Minute})
				due := s.job(id).DueAt
				started := make(chan time.Time, 1)
				s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error {
					started <- store.now()
					return nil
				})
				time.Sleep(4 * time.Minute)
				synctest.Wait()
				if state := s.job(id).State; state != sluice.StateQueued {
					t.Errorf("%s before the lead", state)
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if job := s.job(id); job.State != sluice.StateClaimed {
					t.Errorf("%s within the lead", job.State)
				}
				store.skew.Add(int64(c.set))
				late := (<-started).Sub(due)
				if most := c.there + c.back + 2*time.Second; late < 0 || late > most && c.set+c.there+c.back != 0 || late > time.Millisecond && c.set+c.there+c.back == 0 {
					t.Errorf("it started %s after it was due", late)
				}
				_ = s.end()
			})
		})
	}
}

func TestWhatIsDueGoesOnWhileJobsAreClaimedAhead(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(func(q *sluice.Settings) { q.ClaimAhead, q.Lease = time.Hour, 10*time.Second })
		var later []sluice.ID
		for range 10 {
			later = append(later, s.add(sluice.EnqueueOptions{Delay: 30 * time.Minute, Priority: 1}))
		}
		var early atomic.Int64
		s.run(worker.Options{Slots: 2}, func(_ context.Context, job *worker.Job[payment]) error {
			if job.ClaimedAt.Before(job.DueAt) {
				early.Add(1)
			}
			time.Sleep(time.Second)
			return nil
		})
		for range 20 {
			begun := time.Now()
			s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
			if took := time.Since(begun); took > 3*time.Second {
				t.Errorf("a job that was due took %s", took)
			}
			time.Sleep(time.Minute)
			if out, err := s.store.Recover(s.Context(), payments.Name(), 100, "upkeep"); err != nil || out.Requeued > 0 {
				t.Fatalf("recovered %d, %v: a job that waited was not renewed", out.Requeued, err)
			}
		}
		depth, err := s.client.Depth(s.Context(), payments.Name())
		if err != nil || depth.Claimed != 2 {
			t.Errorf("%d jobs are claimed ahead, want one for each slot: %v", depth.Claimed, err)
		}
		for _, id := range later {
			s.becomes(id, sluice.StateCompleted)
		}
		if early.Load() < 2 {
			t.Errorf("%d jobs were claimed before they were due", early.Load())
		}
		_ = s.end()
	})
}

func TestJobThatIsClaimedAheadCanBeCancelledAndIsReleasedAtTheEnd(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(func(q *sluice.Settings) { q.ClaimAhead = time.Hour })
		first := s.add(sluice.EnqueueOptions{Delay: 30 * time.Minute})
		second := s.add(sluice.EnqueueOptions{Delay: 40 * time.Minute})
		third := s.add(sluice.EnqueueOptions{Delay: 50 * time.Minute})
		s.run(worker.Options{Slots: 2}, func(context.Context, *worker.Job[payment]) error {
			t.Error("a handler ran, want none before its job is due")
			return nil
		})
		for _, id := range []sluice.ID{first, second} {
			s.becomes(id, sluice.StateClaimed)
		}
		if err := s.client.Cancel(s.Context(), []sluice.ID{first}, sluice.Act{By: "ada"}); err != nil {
			t.Fatal(err)
		}
		s.becomes(third, sluice.StateClaimed) // it takes the place of the first job
		due, begun := s.job(second).DueAt, time.Now()
		if err := s.end(); err != nil || time.Since(begun) > time.Second {
			t.Errorf("it took %s to end, %v", time.Since(begun), err)
		}
		for _, id := range []sluice.ID{second, third} {
			if job := s.job(id); job.State != sluice.StateQueued || job.Releases != 1 || job.Attempts != 0 {
				t.Errorf("it is %s after %d releases and %d attempts", job.State, job.Releases, job.Attempts)
			}
		}
		if now := s.job(second).DueAt; !now.Equal(due) {
			t.Errorf("it is due at %s, and was at %s", now, due)
		}
	})
}

func TestQueueKeepsToItsSlotsWhenWhatWasClaimedAheadFallsDue(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(func(q *sluice.Settings) { q.ClaimAhead = time.Hour })
		var ids []sluice.ID
		for range 12 {
			ids = append(ids, s.add(sluice.EnqueueOptions{Delay: 30 * time.Minute}))
		}
		var running atomic.Int64
		s.worker = worker.New(s.store, worker.Options{Slots: 10, Logger: quiet})
		worker.Handle(s.worker, payments, func(context.Context, *worker.Job[payment]) error {
			if n := running.Add(1); n > 3 {
				t.Errorf("%d run at once, and 3 may", n)
			}
			time.Sleep(5 * time.Second)
			running.Add(-1)
			return nil
		}, worker.QueueOptions{Slots: 3})
		s.begin()
		for _, id := range ids {
			s.becomes(id, sluice.StateCompleted)
		}
		_ = s.end()
	})
}

func TestJitterSpreadsStarts(t *testing.T) {
	for name, lead := range map[string]time.Duration{"of jobs that are due": 0, "of jobs that are claimed ahead": time.Minute} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				const jobs, jitter = 200, 4 * time.Second
				s.settings(func(q *sluice.Settings) { q.Jitter, q.ClaimAhead = jitter, lead })
				due := time.Now().Add(10 * time.Minute)
				for range jobs {
					s.add(sluice.EnqueueOptions{DueAt: due})
				}
				var mu sync.Mutex
				var sum time.Duration
				latest, earliest, n := time.Duration(0), time.Hour, 0
				s.run(worker.Options{Slots: jobs}, func(context.Context, *worker.Job[payment]) error {
					mu.Lock()
					defer mu.Unlock()
					after := time.Since(due)
					sum, latest, earliest, n = sum+after, max(latest, after), min(earliest, after), n+1
					return nil
				})
				time.Sleep(10*time.Minute + 2*jitter)
				synctest.Wait()
				_ = s.end()
				if n != jobs || earliest < 0 || latest > jitter+100*time.Millisecond || latest < jitter*9/10 {
					t.Errorf("%d jobs started from %s to %s after they were due", n, earliest, latest)
				}
				if mean := sum / jobs; mean < jitter*4/10 || mean > jitter*6/10 {
					t.Errorf("they started %s after it on average", mean)
				}
			})
		})
	}
}

// claimLog records the claims of a queue.
type claimLog struct {
	sluice.Store
	mu     sync.Mutex
	asked  []time.Time
	limits []int
}

// Unwrap returns the decorated store.
func (c *claimLog) Unwrap() sluice.Store { return c.Store }

func (c *claimLog) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	c.mu.Lock()
	c.asked, c.limits = append(c.asked, time.Now()), append(c.limits, request.Limit)
	c.mu.Unlock()
	return c.Store.Claim(ctx, request)
}

func TestBatchBoundsAClaimAndIntervalSpacesThem(t *testing.T) {
	inShop(t, func(s *shop) {
		log := &claimLog{Store: s.store}
		s.use(log)
		s.settings(func(q *sluice.Settings) { q.Batch, q.Interval = 7, 3*time.Second })
		s.enqueueMany(70)
		s.run(worker.Options{Slots: 50}, func(context.Context, *worker.Job[payment]) error { return nil })
		for range 60 {
			s.add(sluice.EnqueueOptions{Delay: time.Hour}) // the enqueue signals a job
			time.Sleep(500 * time.Millisecond)
		}
		synctest.Wait()
		log.mu.Lock()
		if n := len(log.asked); n < 10 || n > 11 {
			t.Errorf("%d claims in half a minute, want one in three seconds", n)
		}
		for i := range log.asked {
			if log.limits[i] > 7 || i > 0 && log.asked[i].Sub(log.asked[i-1]) < 3*time.Second {
				t.Errorf("claim %d asks for %d at %s, after %s", i, log.limits[i], log.asked[i], log.asked[max(i-1, 0)])
			}
		}
		log.mu.Unlock()
		depth, err := s.client.Depth(s.Context(), payments.Name())
		if err != nil || depth.Ready != 0 {
			t.Errorf("%d jobs are left, %v", depth.Ready, err)
		}
		// The worker uses a change of both settings without a restart.
		s.settings(func(q *sluice.Settings) { q.Batch, q.Interval = 0, 0 })
		time.Sleep(5 * time.Second)
		s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		_ = s.end()
	})
}

func TestJobsWhoseLookIsLateStartInsteadOfGoingBack(t *testing.T) {
	inShop(t, func(s *shop) {
		store := newOtherClock(0, 0, 0)
		s.use(store)
		s.settings(func(q *sluice.Settings) { q.Jitter = time.Hour })
		var ids []sluice.ID
		for range 20 {
			ids = append(ids, s.add(sluice.EnqueueOptions{}))
		}
		s.run(worker.Options{Slots: 20, Poll: 100 * time.Millisecond}, func(context.Context, *worker.Job[payment]) error { return nil })
		time.Sleep(time.Second)
		store.skew.Add(int64(time.Hour)) // all jobs become due long ago at once, and the worker notices late
		for _, id := range ids {
			s.becomes(id, sluice.StateCompleted)
			if releases := s.job(id).Releases; releases > 0 {
				t.Errorf("the job was handed back %d times", releases)
			}
		}
		_ = s.end()
	})
}
