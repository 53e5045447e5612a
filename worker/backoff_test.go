package worker_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

func TestBackoffOfAHandlerSetsTheWaitAlsoAfterAnIgnoredTimeout(t *testing.T) {
	inShop(t, func(s *shop) {
		release := make(chan struct{})
		var causes []error
		s.worker = worker.New(s.store, worker.Options{Logger: quiet})
		worker.Handle(s.worker, payments, func(context.Context, *worker.Job[payment]) error { <-release; return nil },
			worker.QueueOptions{Timeout: time.Second, Backoff: func(attempt int, err error) time.Duration {
				causes = append(causes, err)
				return time.Duration(attempt) * 6 * time.Hour
			}})
		s.begin()
		job := s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateQueued)
		for job.Attempts == 0 {
			time.Sleep(time.Second)
			job = s.job(job.ID)
		}
		if wait := time.Until(job.DueAt); wait < 5*time.Hour || len(causes) != 1 || !errors.Is(causes[0], worker.ErrTimeout) {
			t.Errorf("it waits for %s, and Backoff got %v; want 6 h and a timeout", wait, causes)
		}
		close(release)
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestFunctionsOfTheProgramThatEndTheirGoroutineChangeNoOutcome has functions that fail a test by t.FailNow, for example.
func TestFunctionsOfTheProgramThatEndTheirGoroutineChangeNoOutcome(t *testing.T) {
	inShop(t, func(s *shop) {
		s.worker = worker.New(s.store, worker.Options{Logger: quiet, OnFailure: func(context.Context, worker.Failure) { runtime.Goexit() }})
		worker.Handle(s.worker, payments, func(context.Context, *worker.Job[payment]) error { return errors.New("no luck") },
			worker.QueueOptions{MaxAttempts: 2, Backoff: func(int, error) time.Duration { runtime.Goexit(); return 0 }})
		s.begin()
		if job := s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateDead); job.Attempts != 2 || job.Error != "no luck" {
			t.Errorf("%d attempts, error %q", job.Attempts, job.Error)
		}
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
}

// TestABackoffThatHangsCostsNoOutcomeAndHoldsUpNoEnd has a Backoff that asks a service which never answers.
func TestABackoffThatHangsCostsNoOutcomeAndHoldsUpNoEnd(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(noJitter)
		release := make(chan struct{})
		s.worker = worker.New(s.store, worker.Options{Logger: quiet})
		worker.Handle(s.worker, payments, func(context.Context, *worker.Job[payment]) error { return errors.New("no luck") },
			worker.QueueOptions{Backoff: func(int, error) time.Duration { <-release; return 0 }})
		s.begin()
		id := s.add(sluice.EnqueueOptions{})
		s.becomes(id, sluice.StateClaimed)
		if err := s.end(); err != nil {
			t.Error(err)
		}
		if job := s.job(id); job.State != sluice.StateQueued || job.Attempts != 1 || !job.DueAt.After(time.Now()) {
			t.Errorf("the job is %s, due at %s, after %d attempts; want it to wait after the first", job.State, job.DueAt, job.Attempts)
		}
		close(release)
	})
}
