package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// TestJobsThatFallDueTogetherAllGetTheirSlots lets handlers be slow that were quick before.
func TestJobsThatFallDueTogetherAllGetTheirSlots(t *testing.T) {
	inShop(t, func(s *shop) {
		const slots = 200
		s.settings(func(q *sluice.Settings) { q.ClaimAhead = 10 * time.Second })
		var slow atomic.Bool
		var running atomic.Int32
		release := make(chan struct{})
		s.run(worker.Options{Slots: slots}, func(context.Context, *worker.Job[payment]) error {
			if slow.Load() {
				running.Add(1)
				<-release
			}
			time.Sleep(10 * time.Microsecond)
			return nil
		})
		s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		slow.Store(true)
		for range slots {
			s.add(sluice.EnqueueOptions{Delay: 5 * time.Second})
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := running.Load(); got != slots {
			t.Errorf("%d jobs run 5 s after they were due, want %d", got, slots)
		}
		close(release)
		_ = s.end()
	})
}
