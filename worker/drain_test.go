package worker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/worker"
)

func TestDrainLetsHandlersFinishAndClaimsNoMore(t *testing.T) {
	inShop(t, func(s *shop) {
		s.run(worker.Options{Slots: 1}, func(context.Context, *worker.Job[payment]) error {
			time.Sleep(20 * time.Second)
			return nil
		})
		first, second := s.add(sluice.EnqueueOptions{}), s.add(sluice.EnqueueOptions{})
		s.becomes(first, sluice.StateClaimed)
		if err := s.end(); err != nil {
			t.Errorf("drain: %v", err)
		}
		if job := s.job(first); job.State != sluice.StateCompleted {
			t.Errorf("the one that ran is %s", job.State)
		}
		if job := s.job(second); job.State != sluice.StateQueued || job.Attempts != 0 {
			t.Errorf("the one that waited is %s", job.State)
		}
		holders, err := presence.Holders(t.Context(), s.store)
		if err != nil || len(holders) != 0 {
			t.Errorf("holders after the end: %v, %v", holders, err)
		}
	})
}

func TestDrainThatTimesOutReleasesTheJobAndCountsNoAttempt(t *testing.T) {
	for name, heeds := range map[string]bool{"handler heeds its context": true, "handler ignores it": false} {
		t.Run(name, func(t *testing.T) {
			inShop(t, func(s *shop) {
				forgotten := make(chan struct{})
				var cause error
				s.run(worker.Options{Drain: 30 * time.Second}, func(ctx context.Context, _ *worker.Job[payment]) error {
					if !heeds {
						<-forgotten
						return nil
					}
					<-ctx.Done()
					cause = context.Cause(ctx)
					return ctx.Err()
				})
				id := s.add(sluice.EnqueueOptions{})
				s.becomes(id, sluice.StateClaimed)
				asked := time.Now()
				if err := s.end(); !errors.Is(err, worker.ErrDrainTimeout) {
					t.Errorf("Run returned %v", err)
				}
				if took := time.Since(asked); took < 30*time.Second || took > 36*time.Second {
					t.Errorf("the drain took %s", took)
				}
				job := s.job(id)
				if job.State != sluice.StateQueued || job.Attempts != 0 || job.Releases != 1 {
					t.Errorf("state %s, attempts %d, releases %d", job.State, job.Attempts, job.Releases)
				}
				if heeds && !errors.Is(cause, worker.ErrShutdown) {
					t.Errorf("cause %v", cause)
				}
				close(forgotten)
			})
		})
	}
}

func TestQueuesAreServedInOrderAndWithinTheirSlots(t *testing.T) {
	inShop(t, func(s *shop) {
		urgent, bulk := sluice.QueueOf[payment]("urgent"), sluice.QueueOf[payment]("bulk")
		var mu sync.Mutex
		var order []string
		var busy, most int
		handler := func(slow time.Duration) worker.Handler[payment] {
			return func(_ context.Context, job *worker.Job[payment]) error {
				mu.Lock()
				order = append(order, job.Queue)
				if job.Queue == "bulk" {
					busy++
					most = max(most, busy)
				}
				mu.Unlock()
				time.Sleep(slow)
				mu.Lock()
				defer mu.Unlock()
				if job.Queue == "bulk" {
					busy--
				}
				return nil
			}
		}
		var last sluice.ID
		for i := range 12 {
			queue := urgent
			if i < 8 {
				queue = bulk
			}
			receipt, err := queue.Enqueue(t.Context(), s.client, payment{}, sluice.EnqueueOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if i == 7 {
				last = receipt.ID
			}
		}
		s.worker = worker.New(s.store, worker.Options{Slots: 4, Logger: quiet})
		worker.Handle(s.worker, urgent, handler(time.Second), worker.QueueOptions{})
		worker.Handle(s.worker, bulk, handler(time.Second), worker.QueueOptions{Slots: 2})
		s.begin()
		s.becomes(last, sluice.StateCompleted)
		for i, queue := range order[:4] {
			if queue != "urgent" {
				t.Errorf("start %d was of %s", i, queue)
			}
		}
		if most != 2 {
			t.Errorf("%d of the bulk queue ran at once, want 2", most)
		}
		_ = s.end()
	})
}
