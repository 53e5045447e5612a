package worker_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// TestTimeoutOfAJobOverridesThatOfItsHandlerAndQueue runs jobs with timeouts below and above those of handler and
// queue. The worker ends them by a timer or in its rounds.
func TestTimeoutOfAJobOverridesThatOfItsHandlerAndQueue(t *testing.T) {
	for _, c := range []struct {
		job, handler time.Duration
		want         string
	}{{10 * time.Second, time.Minute, "10s"}, {5 * time.Minute, time.Minute, "5m0s"}, {0, time.Minute, "1m0s"}, {0, 0, "30s"}} {
		t.Run(c.want, func(t *testing.T) {
			inShop(t, func(s *shop) {
				s.settings(func(set *sluice.Settings) { set.Timeout, set.MaxAttempts = 30*time.Second, 1 })
				var took time.Duration
				s.worker = worker.New(s.store, worker.Options{Logger: quiet})
				worker.Handle(s.worker, payments, func(ctx context.Context, _ *worker.Job[payment]) error {
					begun := time.Now()
					<-ctx.Done()
					took = time.Since(begun)
					return context.Cause(ctx)
				}, worker.QueueOptions{Timeout: c.handler})
				s.begin()
				job := s.becomes(s.add(sluice.EnqueueOptions{Timeout: c.job}), sluice.StateDead)
				want, _ := time.ParseDuration(c.want)
				if !strings.Contains(job.Error, "timed out after "+c.want) || took < want || took > want+2*time.Second {
					t.Errorf("after %s: %q", took, job.Error)
				}
				_ = s.end()
			})
		})
	}
}
