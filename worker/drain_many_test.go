package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// TestHundredsOfDrainsAndLateTimersCostNoAttempt ends the worker again and again. Handlers run at that moment, or jobs
// wait for an instant within the jitter. A job dies at its first failed attempt.
func TestHundredsOfDrainsAndLateTimersCostNoAttempt(t *testing.T) {
	inShop(t, func(s *shop) {
		const drains = 300
		s.settings(func(q *sluice.Settings) {
			q.MaxAttempts, q.ClaimAhead, q.Jitter = 1, 2*time.Second, time.Second
		})
		var jobs []sluice.ID
		for i := range drains {
			for range 3 {
				jobs = append(jobs, s.add(sluice.EnqueueOptions{Delay: time.Duration(i%7) * time.Second}))
			}
			s.run(worker.Options{Slots: 4, Drain: 200 * time.Millisecond, Poll: 500 * time.Millisecond}, func(ctx context.Context, _ *worker.Job[payment]) error {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(700 * time.Millisecond):
					return nil
				}
			})
			time.Sleep(time.Duration(300+i*37%2000) * time.Millisecond)
			_ = s.end() // the result depends on whether handlers were still running
		}
		s.run(worker.Options{Slots: 20}, func(context.Context, *worker.Job[payment]) error { return nil })
		released := 0
		for _, id := range jobs {
			job := s.becomes(id, sluice.StateCompleted)
			if released += job.Releases; job.Attempts != 0 {
				t.Errorf("job %s has %d failed attempts", id, job.Attempts)
			}
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
		t.Logf("%d jobs were handed back %d times by %d drains", len(jobs), released, drains)
		if released < drains {
			t.Errorf("jobs were handed back %d times: the drains met too few", released)
		}
	})
}
