package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// slow is a store that takes a second for each call that settles.
type slow struct{ sluice.Store }

// Unwrap returns the decorated store.
func (s slow) Unwrap() sluice.Store { return s.Store }

func (s slow) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	time.Sleep(time.Second)
	return s.Store.Settle(ctx, settlements)
}

// TestOnceThatIsCutOffWritesTheOutcomesOfJobsThatAreDone ends Once while a call goes on that has settled all its jobs but
// one.
func TestOnceThatIsCutOffWritesTheOutcomesOfJobsThatAreDone(t *testing.T) {
	inShop(t, func(s *shop) {
		s.store = slow{s.store}
		s.worker = worker.New(s.store, worker.Options{Logger: quiet, Drain: 2 * time.Second, Abandon: 2 * time.Second})
		release := make(chan struct{})
		worker.HandleMany(s.worker, payments, func(_ context.Context, jobs []*worker.Job[payment]) error {
			for _, job := range jobs[1:] {
				if err := job.Settle(nil); err != nil {
					s.Error(err)
				}
			}
			<-release
			return nil
		}, worker.ManyOptions{Size: 30})
		ids := s.addMany(30)
		ctx, stop := context.WithTimeout(s.Context(), time.Second)
		defer stop()
		if ran, err := s.worker.Once(ctx); ran != 30 || !errors.Is(err, worker.ErrDrainTimeout) {
			s.Errorf("%d jobs ran: %v", ran, err)
		}
		done := 0
		for _, id := range ids {
			switch job := s.job(id); job.State {
			case sluice.StateCompleted:
				done++
			case sluice.StateClaimed:
				s.Errorf("job %s is still claimed", id)
			}
		}
		if done != 29 {
			s.Errorf("%d jobs are completed, want the 29 that the call settled", done)
		}
		close(release)
	})
}
