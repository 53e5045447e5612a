package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// TestJobThatWasClaimedAheadDoesNotBeginAfterAPause pauses the queue while claimed jobs wait for their instant within
// the jitter.
func TestJobThatWasClaimedAheadDoesNotBeginAfterAPause(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(func(q *sluice.Settings) { q.Jitter = 30 * time.Second })
		var ids []sluice.ID
		for range 40 {
			ids = append(ids, s.add(sluice.EnqueueOptions{}))
		}
		var mu sync.Mutex
		var last time.Time
		begun := 0
		s.run(worker.Options{Slots: 50}, func(context.Context, *worker.Job[payment]) error {
			mu.Lock()
			defer mu.Unlock()
			begun++
			last = time.Now()
			return nil
		})
		time.Sleep(10 * time.Second)
		act := sluice.Act{By: "ada", Reason: "stop"}
		paused := time.Now()
		if err := s.client.Pause(t.Context(), s.job(ids[0]).Queue, act); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		mu.Lock()
		if late := last.Sub(paused); late > time.Second || begun == 0 || begun == len(ids) {
			t.Errorf("%d handlers began, the last one %s after the pause", begun, late)
		}
		mu.Unlock()
		for _, id := range ids {
			if job := s.job(id); job.State == sluice.StateClaimed || job.Attempts > 0 && job.State != sluice.StateCompleted {
				t.Errorf("job %s is %s after %d attempts", id, job.State, job.Attempts)
			}
		}
	})
}
