package worker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// settlesFirst returns a handler of calls that settles its jobs and then works for a second, and its figures: the calls
// that have returned, and the most that ran at once.
func settlesFirst(s *shop) (handler worker.ManyHandler[payment], returned, most *int) {
	returned, most = new(int), new(int)
	running := 0
	return func(_ context.Context, jobs []*worker.Job[payment]) error {
		running++
		*most = max(*most, running)
		for _, job := range jobs {
			if err := job.Settle(nil); err != nil {
				s.Error(err)
			}
		}
		time.Sleep(time.Second)
		running--
		*returned++
		return nil
	}, returned, most
}

func TestOnceWaitsForACallThatGoesOnOnceItsJobsAreSettled(t *testing.T) {
	inShop(t, func(s *shop) {
		handler, returned, most := settlesFirst(s)
		s.worker = worker.New(s.store, worker.Options{Logger: quiet})
		worker.HandleMany(s.worker, payments, handler, worker.ManyOptions{Size: 2})
		s.addMany(6)
		ran, err := s.worker.Once(s.Context())
		if err != nil || ran != 6 || *returned != 3 || *most != 1 {
			t.Errorf("%d jobs ran, and %d calls have returned, %d at once; want 6, 3 and 1: %v", ran, *returned, *most, err)
		}
	})
}

func TestDrainWaitsForACallThatGoesOnOnceItsJobsAreSettled(t *testing.T) {
	inShop(t, func(s *shop) {
		handler, returned, _ := settlesFirst(s)
		s.runMany(worker.Options{}, handler, worker.ManyOptions{Size: 1})
		s.becomes(s.addMany(1)[0], sluice.StateCompleted)
		if err := s.end(); err != nil || *returned != 1 {
			t.Errorf("%d calls have returned when Run returns, want 1: %v", *returned, err)
		}
	})
}

func TestOnceWaitsForOnFailure(t *testing.T) {
	inShop(t, func(s *shop) {
		told := 0
		s.worker = worker.New(s.store, worker.Options{Logger: quiet, OnFailure: func(context.Context, worker.Failure) {
			time.Sleep(time.Second)
			told++
		}})
		worker.Handle(s.worker, payments, func(context.Context, *worker.Job[payment]) error {
			return worker.Permanent(errors.New("account closed"))
		}, worker.QueueOptions{})
		s.addMany(2)
		if ran, err := s.worker.Once(s.Context()); err != nil || ran != 2 || told != 2 {
			t.Errorf("%d jobs ran, and OnFailure was told of %d; want 2 and 2: %v", ran, told, err)
		}
	})
}
