package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

func TestJobThatWaitsAgainStartsWhenItIsDue(t *testing.T) {
	for name, again := range map[string]error{
		"a retry":  worker.RetryAfter(100*time.Millisecond, errors.New("no luck")),
		"a snooze": worker.Snooze(100 * time.Millisecond),
	} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				var ended time.Time
				var waited time.Duration
				s.run(worker.Options{}, func(_ context.Context, job *worker.Job[payment]) error {
					if !ended.IsZero() {
						waited = time.Since(ended)
						return nil
					}
					time.Sleep(time.Second)
					ended = time.Now()
					return again
				})
				time.Sleep(time.Minute) // the worker is idle for a while
				s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
				if err := s.end(); err != nil {
					t.Error(err)
				}
				if waited < 100*time.Millisecond || waited > 300*time.Millisecond {
					t.Errorf("the job began again after %s, want 100 ms", waited)
				}
			})
		})
	}
}
