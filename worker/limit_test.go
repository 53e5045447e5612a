package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
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
		"a payment every two seconds": {0.5, 1, 20},
		"a few per second":            {7, 3, 300},
		"as the sources say it":       {100, 0, 2000},
		"many per second":             {2000, 200, 20_000},
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
				took := starts[len(starts)-1].Sub(starts[0]).Seconds()
				burst := float64(rate.burst)
				if burst == 0 {
					burst = float64(rate.rate)
				}
				if most := burst + float64(rate.rate)*took + 1e-3; float64(len(starts)) > most {
					t.Errorf("%d jobs started in %.3f s, and %.1f are allowed", len(starts), took, most)
				}
				if least := 0.95 * float64(rate.rate) * took; float64(len(starts)) < least {
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
		s.settings(func(q *sluice.Settings) { q.InFlightLimit = limit })
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

// TestLowPriorityIsServedUnderConstantLoad keeps more jobs of priority 1 waiting than can be worked off
// (I-14).
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
