package worker_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/store/storetest"
	"github.com/sluice-queue/sluice/worker"
)

// enqueueMany stores n payments.
func (s *shop) enqueueMany(n int) {
	s.Helper()
	jobs := make([]sluice.NewJob, n)
	for i := range jobs {
		var err error
		if jobs[i], err = payments.NewJob(payment{Cents: 1}, sluice.EnqueueOptions{}); err != nil {
			s.Fatal(err)
		}
	}
	if _, err := s.client.EnqueueMany(s.Context(), jobs); err != nil {
		s.Fatal(err)
	}
}

func TestRateIsKeptAndMadeUseOf(t *testing.T) {
	for name, rate := range map[string]struct {
		rate  sluice.Rate
		burst int
		jobs  int
	}{
		"a payment every two seconds": {sluice.RatePerSecond(0.5), 1, 20},
		"a few per second":            {sluice.RatePerSecond(7), 3, 300},
		"as the sources say it":       {sluice.Rate{Jobs: 500, Per: 5 * time.Second}, 0, 5000},
		"many per second":             {sluice.RatePerSecond(2000), 200, 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				s.settings(func(q *sluice.Settings) { q.Rate, q.Burst = rate.rate, rate.burst })
				s.enqueueMany(rate.jobs)
				var mu sync.Mutex
				var starts []time.Time
				done := make(chan struct{})
				s.run(worker.Options{Slots: 50}, func(context.Context, *worker.Job[payment]) error {
					mu.Lock()
					defer mu.Unlock()
					if starts = append(starts, time.Now()); len(starts) == rate.jobs {
						close(done)
					}
					return nil
				})
				<-done
				storetest.KeepsRate(t, starts, rate.rate, rate.burst)
				took := starts[len(starts)-1].Sub(starts[0]).Seconds()
				burst, perSecond := rate.rate.Tokens(rate.burst), rate.rate.PerSecond()
				if rate.burst == 0 {
					perSecond *= 1.02 // within a window; KeepsRate looks at all windows
				}
				if most := burst + perSecond*took + 1e-3; float64(len(starts)) > most {
					t.Errorf("%d jobs started in %.3f s, and %.1f are allowed", len(starts), took, most)
				}
				if least := 0.95 * rate.rate.PerSecond() * took; float64(len(starts)) < least {
					t.Errorf("%d jobs started in %.3f s, want at least %.1f", len(starts), took, least)
				}
				_ = s.end()
			})
		})
	}
}

func TestFullQueueGoesOnAsSoonAsAJobHasEnded(t *testing.T) {
	inShop(t, func(s *shop) {
		const limit, jobs = 3, 30
		s.settings(func(q *sluice.Settings) { q.Concurrency = limit })
		s.enqueueMany(jobs)
		var mu sync.Mutex
		running, ended := 0, 0
		begun := time.Now()
		done := make(chan struct{})
		s.run(worker.Options{Slots: 10, Poll: time.Hour}, func(context.Context, *worker.Job[payment]) error {
			mu.Lock()
			if running++; running > limit {
				t.Errorf("%d jobs run, and %d are allowed", running, limit)
			}
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			running--
			if ended++; ended == jobs {
				close(done)
			}
			return nil
		})
		<-done
		if took := time.Since(begun); took > jobs/limit*time.Second+time.Second {
			t.Errorf("it took %s, want about %ds", took, jobs/limit)
		}
		_ = s.end()
	})
}

// TestFullQueueGoesOnWhenItsJobIsCancelled polls once an hour, so only the signal of the cancel can show the free
// place.
func TestFullQueueGoesOnWhenItsJobIsCancelled(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(func(q *sluice.Settings) { q.Concurrency = 1 })
		first, second := s.add(sluice.EnqueueOptions{Priority: 1}), s.add(sluice.EnqueueOptions{})
		s.run(worker.Options{Slots: 10, Poll: time.Hour}, func(ctx context.Context, job *worker.Job[payment]) error {
			if job.ID == first {
				<-ctx.Done()
			}
			return nil
		})
		begun := time.Now()
		if err := s.client.Cancel(s.Context(), []sluice.ID{first}, sluice.Act{By: "ada"}); err != nil {
			s.Fatal(err)
		}
		s.becomes(second, sluice.StateCompleted)
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("it took %s", took)
		}
		_ = s.end()
	})
}

// claimCounter counts the claims of each queue.
type claimCounter struct {
	sluice.Store
	mu     sync.Mutex
	claims map[string]int
}

// Unwrap returns the decorated store.
func (c *claimCounter) Unwrap() sluice.Store { return c.Store }

func (c *claimCounter) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	c.mu.Lock()
	c.claims[request.Queue]++
	c.mu.Unlock()
	return c.Store.Claim(ctx, request)
}

// TestQueueThatIsHeldBackIsNotAskedInVain enqueues into a queue at its limit, and works off another queue. The worker
// must not claim from the queue meanwhile, because neither makes a free place.
func TestQueueThatIsHeldBackIsNotAskedInVain(t *testing.T) {
	for name, limit := range map[string]func(*sluice.Settings){
		"by its rate":              func(q *sluice.Settings) { q.Rate, q.Burst = sluice.RatePerSecond(0.1), 1 },
		"by its concurrency limit": func(q *sluice.Settings) { q.Concurrency = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				counter := &claimCounter{Store: s.store, claims: map[string]int{}}
				s.store = counter
				s.settings(limit)
				other := sluice.QueueOf[payment]("other")
				s.worker = worker.New(s.store, worker.Options{Slots: 10, Logger: quiet})
				worker.Handle(s.worker, payments, func(ctx context.Context, _ *worker.Job[payment]) error {
					<-ctx.Done()
					return nil
				}, worker.QueueOptions{})
				worker.Handle(s.worker, other, func(context.Context, *worker.Job[payment]) error { return nil }, worker.QueueOptions{})
				s.begin()
				for range 1000 { // for 10 s
					s.add(sluice.EnqueueOptions{})
					if _, err := other.Enqueue(s.Context(), s.client, payment{}, sluice.EnqueueOptions{}); err != nil {
						s.Fatal(err)
					}
					time.Sleep(10 * time.Millisecond)
				}
				counter.mu.Lock()
				asked := counter.claims[payments.Name()]
				counter.mu.Unlock()
				if asked > 100 && name == "by its rate" || asked > 1100 {
					t.Errorf("it was asked %d times", asked)
				}
				_ = s.end()
			})
		})
	}
}

// TestJobsThatWaitForTheirLimitKeyAreNotForgotten leaves a queue with jobs that wait for their limit key alone. Nobody
// signals that the key has room again: by its rate, or because a job of another queue has ended.
func TestJobsThatWaitForTheirLimitKeyAreNotForgotten(t *testing.T) {
	for name, c := range map[string]struct {
		limit limit.Limit
		queue string // of the first job
	}{
		"the rate":                          {limit.Limit{Rate: sluice.Rate{Jobs: 1, Per: 5 * time.Minute}}, payments.Name()},
		"the end of a job of another queue": {limit.Limit{Concurrency: 1}, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				_, err := limit.Change(t.Context(), s.store, "host", sluice.Act{By: "test"}, func(l *limit.Limit) error {
					l.Rate, l.Concurrency, l.PerKey = c.limit.Rate, c.limit.Concurrency, true
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				settings := sluice.DefaultSettings()
				settings.Limits = "host"
				for _, queue := range []string{payments.Name(), c.queue} {
					if _, err := s.client.EnsureQueue(t.Context(), queue, settings, sluice.Act{By: "test"}); err != nil {
						t.Fatal(err)
					}
				}
				first := sluice.QueueOf[payment](c.queue)
				if _, err := first.Enqueue(t.Context(), s.client, payment{}, sluice.EnqueueOptions{LimitKey: "a"}); err != nil {
					t.Fatal(err)
				}
				handler := func(context.Context, *worker.Job[payment]) error {
					time.Sleep(time.Minute)
					return nil
				}
				s.worker = worker.New(s.store, worker.Options{Logger: quiet})
				worker.Handle(s.worker, payments, handler, worker.QueueOptions{})
				if c.queue != payments.Name() {
					worker.Handle(s.worker, first, handler, worker.QueueOptions{})
				}
				s.begin()
				time.Sleep(time.Second)
				begun, waiting := time.Now(), s.add(sluice.EnqueueOptions{LimitKey: "a"})
				s.becomes(waiting, sluice.StateCompleted)
				if took := time.Since(begun); took > 7*time.Minute {
					t.Errorf("the waiting job ended after %s, want 6m at most", took)
				}
				_ = s.end()
			})
		})
	}
}

// TestLowPriorityIsServedUnderConstantLoad keeps more jobs of priority 1 waiting than the worker can work off.
func TestLowPriorityIsServedUnderConstantLoad(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(func(q *sluice.Settings) { q.Ageing = 0.2 })
		low := s.add(sluice.EnqueueOptions{Priority: 9})
		for range 100 {
			s.add(sluice.EnqueueOptions{Priority: 1})
		}
		s.run(worker.Options{Slots: 1}, func(ctx context.Context, job *worker.Job[payment]) error {
			if job.Priority == 1 {
				for range 2 {
					if _, err := payments.Enqueue(ctx, s.client, payment{}, sluice.EnqueueOptions{Priority: 1}); err != nil {
						return err
					}
				}
			}
			time.Sleep(time.Second)
			return nil
		})
		s.becomes(low, sluice.StateCompleted)
		_ = s.end()
	})
}

// Checking a payload may take long, and each time differently. The rate counts from the call of the handler.
func TestRateCountsFromTheCallOfTheHandler(t *testing.T) {
	inShop(t, func(s *shop) {
		const jobs = 200
		rate := sluice.RatePerSecond(20)
		s.settings(func(q *sluice.Settings) { q.Rate, q.PayloadSchema = rate, `{}` })
		s.client = sluice.NewClient(s.store, sluice.ClientOptions{PayloadChecker: &slowChecker{}})
		s.enqueueMany(jobs)
		var mu sync.Mutex
		var starts []time.Time
		done := make(chan struct{})
		s.worker = worker.New(s.store, worker.Options{Slots: 50, PayloadChecker: &slowChecker{most: 400 * time.Millisecond}, Logger: quiet})
		worker.Handle(s.worker, payments, func(context.Context, *worker.Job[payment]) error {
			mu.Lock()
			defer mu.Unlock()
			if starts = append(starts, time.Now()); len(starts) == jobs {
				close(done)
			}
			return nil
		}, worker.QueueOptions{})
		s.begin()
		<-done
		storetest.KeepsRate(t, starts, rate, 0)
		_ = s.end()
	})
}

// slowPayload takes a while to decode, each time another.
type slowPayload struct{}

var slowPayloads atomic.Int64

func (*slowPayload) UnmarshalJSON([]byte) error {
	time.Sleep(300 * time.Millisecond * time.Duration(slowPayloads.Add(1)*37%101) / 100)
	return nil
}

// Decoding the payloads of a call may take long. The rate counts all of its jobs from the call.
func TestRateCountsFromTheCallOfTheManyHandler(t *testing.T) {
	inShop(t, func(s *shop) {
		const jobs = 200
		rate := sluice.RatePerSecond(20)
		s.settings(func(q *sluice.Settings) { q.Rate = rate })
		s.enqueueMany(jobs)
		var mu sync.Mutex
		var starts []time.Time
		done := make(chan struct{})
		s.worker = worker.New(s.store, worker.Options{Logger: quiet})
		worker.HandleMany(s.worker, sluice.QueueOf[slowPayload](payments.Name()), func(_ context.Context, called []*worker.Job[slowPayload]) error {
			mu.Lock()
			defer mu.Unlock()
			for range called {
				if starts = append(starts, time.Now()); len(starts) == jobs {
					close(done)
				}
			}
			return nil
		}, worker.ManyOptions{QueueOptions: worker.QueueOptions{Slots: 10}, Size: 10, Within: 500 * time.Millisecond})
		s.begin()
		<-done
		storetest.KeepsRate(t, starts, rate, 0)
		_ = s.end()
	})
}

// slowChecker is a payload checker that takes a varying time.
type slowChecker struct {
	most time.Duration
	n    atomic.Int64
}

func (*slowChecker) Compile(string) error { return nil }

func (c *slowChecker) Check(string, []byte) error {
	time.Sleep(c.most * time.Duration(c.n.Add(1)*37%101) / 100)
	return nil
}
