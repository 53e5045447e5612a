package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// TestJobsThatWaitForASlowCallGoToAnotherWorker lets a call run on while other jobs come that would fit into it.
func TestJobsThatWaitForASlowCallGoToAnotherWorker(t *testing.T) {
	inShop(t, func(s *shop) {
		slow := func(ctx context.Context, _ []*worker.Job[payment]) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}
		s.settings(func(set *sluice.Settings) { set.Timeout = time.Hour })
		s.runMany(worker.Options{}, slow, worker.ManyOptions{Size: 10})
		s.becomes(s.addMany(1)[0], sluice.StateClaimed)
		time.Sleep(time.Second)
		ids := s.addMany(25)
		time.Sleep(10 * time.Second)
		for _, id := range ids {
			if job := s.job(id); job.State != sluice.StateQueued || job.Releases > 1 {
				t.Fatalf("%s after %d releases, want it to wait for any worker after one at most", job.State, job.Releases)
			}
		}
		other := worker.New(s.store, worker.Options{Logger: quiet})
		worker.Handle(other, payments, func(context.Context, *worker.Job[payment]) error { return nil }, worker.QueueOptions{})
		if ran, err := other.Once(s.Context()); err != nil || ran != len(ids) {
			t.Errorf("the other worker ran %d jobs, want %d: %v", ran, len(ids), err)
		}
		_ = s.end()
	})
}

func TestJobsThatWaitForACallAreHandedBackWhenTheDrainBegins(t *testing.T) {
	inShop(t, func(s *shop) {
		begun := make(chan struct{}, 2)
		s.runMany(worker.Options{Poll: time.Minute}, func(context.Context, []*worker.Job[payment]) error {
			begun <- struct{}{}
			time.Sleep(20 * time.Second)
			return nil
		}, worker.ManyOptions{Size: 10})
		s.addMany(1)
		<-begun
		id := s.addMany(1)[0]
		s.becomes(id, sluice.StateClaimed)
		time.Sleep(time.Second)
		s.stop()
		time.Sleep(time.Second)
		if job := s.job(id); job.State != sluice.StateQueued {
			t.Errorf("%s a second after the drain began, want it to be there for others", job.State)
		}
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
	})
}

func TestAWorkerClaimsAgainWhenItsSlowCallHasEnded(t *testing.T) {
	inShop(t, func(s *shop) {
		s.runMany(worker.Options{}, func(context.Context, []*worker.Job[payment]) error {
			time.Sleep(20 * time.Second)
			return nil
		}, worker.ManyOptions{Size: 10})
		first := s.addMany(1)[0]
		s.becomes(first, sluice.StateClaimed)
		time.Sleep(time.Second)
		second := s.addMany(1)[0]
		s.becomes(first, sluice.StateCompleted)
		ended := time.Now()
		s.becomes(second, sluice.StateCompleted)
		if took := time.Since(ended); took > 21*time.Second {
			t.Errorf("the second call ended %s after the first, want the 20 s that it takes and some ms", took)
		}
		_ = s.end()
	})
}
