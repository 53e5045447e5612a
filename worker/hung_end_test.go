package worker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// longest is how long Run may take to end if the store hangs.
const longest = 5*time.Second + 5*time.Second + 3*callTime

// endsInTime ends a worker whose store hangs, and makes sure that Run returns in time.
func (s *shop) endsInTime() error {
	s.Helper()
	asked := time.Now()
	err := s.end()
	if took := time.Since(asked); took > longest {
		s.Errorf("Run took %s to end, want %s at most", took, longest)
	}
	return err
}

// TestRunEndsInTimeThoughOutcomesOfManyJobsCannotBeWritten lets the outcomes fill several batches.
func TestRunEndsInTimeThoughOutcomesOfManyJobsCannotBeWritten(t *testing.T) {
	inShop(t, func(s *shop) {
		store, release := s.hang(), make(chan struct{})
		s.run(worker.Options{Slots: 3000, Drain: 5 * time.Second}, func(context.Context, *worker.Job[payment]) error {
			<-release
			return nil
		})
		s.addMany(3000)
		time.Sleep(time.Second)
		store.away.Store(true)
		close(release)
		if err := s.endsInTime(); !errors.Is(err, sluice.ErrUnavailable) {
			s.Errorf("Run returned %v", err)
		}
	})
}

// TestRunEndsInTimeThoughNoClaimIsAnswered serves many queues with a rate, each of which is claimed from alone.
func TestRunEndsInTimeThoughNoClaimIsAnswered(t *testing.T) {
	inShop(t, func(s *shop) {
		store := s.hang()
		s.worker = worker.New(s.store, worker.Options{Logger: quiet, Drain: 5 * time.Second})
		for n := range 20 {
			queue := sluice.QueueOf[payment](fmt.Sprintf("bank-%d", n))
			settings := sluice.DefaultSettings()
			settings.Rate = sluice.Rate{Jobs: 100, Per: time.Minute}
			if _, err := s.client.EnsureQueue(s.Context(), queue.Name(), settings, sluice.Act{By: "test"}); err != nil {
				s.Fatal(err)
			}
			if _, err := queue.Enqueue(s.Context(), s.client, payment{}, sluice.EnqueueOptions{}); err != nil {
				s.Fatal(err)
			}
			worker.Handle(s.worker, queue, func(context.Context, *worker.Job[payment]) error { return nil }, worker.QueueOptions{})
		}
		s.begin()
		store.away.Store(true) // before the starts of the jobs are reported
		time.Sleep(time.Minute)
		_ = s.endsInTime()
	})
}

// TestOutcomesOfADrainThatTookAllItsTimeAreWritten meets a store that was away long before.
func TestOutcomesOfADrainThatTookAllItsTimeAreWritten(t *testing.T) {
	inShop(t, func(s *shop) {
		store := s.hang()
		s.run(worker.Options{Drain: 5 * time.Second}, func(_ context.Context, job *worker.Job[payment]) error {
			if time.Sleep(time.Second); job.Tenant == "stubborn" {
				time.Sleep(time.Hour)
			}
			return nil
		})
		s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateClaimed)
		store.away.Store(true)
		time.Sleep(10 * time.Minute) // the worker gives the outcome up
		store.away.Store(false)
		id := s.add(sluice.EnqueueOptions{Tenant: "stubborn"})
		s.becomes(id, sluice.StateClaimed)
		if err := s.end(); !errors.Is(err, worker.ErrDrainTimeout) {
			s.Errorf("Run returned %v", err)
		}
		if job := s.job(id); job.State != sluice.StateQueued {
			s.Errorf("the job is %s, want it handed back", job.State)
		}
		time.Sleep(time.Hour) // the handler returns
	})
}
