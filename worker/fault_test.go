package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/worker"
)

// failing is a store whose claims, renewals and settlements can be made to fail.
type failing struct {
	sluice.Store
	claim, renew, settle atomic.Bool
}

// Unwrap returns the decorated store.
func (f *failing) Unwrap() sluice.Store { return f.Store }

var errCut = errors.New("connection refused")

func (f *failing) Claim(ctx context.Context, r sluice.ClaimRequest) (sluice.Claimed, error) {
	if f.claim.Load() {
		return sluice.Claimed{}, errCut
	}
	return f.Store.Claim(ctx, r)
}

func (f *failing) Renew(ctx context.Context, r []sluice.Renewal) ([]sluice.ID, error) {
	if f.renew.Load() {
		return nil, errCut
	}
	return f.Store.Renew(ctx, r)
}

func (f *failing) Settle(ctx context.Context, s []sluice.Settlement) ([]error, error) {
	if f.settle.Load() {
		return nil, errCut
	}
	return f.Store.Settle(ctx, s)
}

func TestClaimsGoOnAfterTheStoreWasAway(t *testing.T) {
	inShop(t, func(s *shop) {
		store := &failing{Store: s.store}
		s.store = store
		store.claim.Store(true)
		s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error { return nil })
		id := s.add(sluice.EnqueueOptions{})
		time.Sleep(time.Minute)
		store.claim.Store(false)
		s.becomes(id, sluice.StateCompleted)
		_ = s.end()
	})
}

func TestSettlementsAreWrittenWhenTheStoreIsBack(t *testing.T) {
	inShop(t, func(s *shop) {
		store := &failing{Store: s.store}
		s.store = store
		store.settle.Store(true)
		var runs atomic.Int32
		s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error { runs.Add(1); return nil })
		id := s.add(sluice.EnqueueOptions{})
		time.Sleep(20 * time.Second)
		store.settle.Store(false)
		s.becomes(id, sluice.StateCompleted)
		if runs.Load() != 1 {
			t.Errorf("ran %d times", runs.Load())
		}
		_ = s.end()
	})
}

func TestHandlerIsToldWhenItsLeaseCannotBeRenewed(t *testing.T) {
	inShop(t, func(s *shop) {
		store := &failing{Store: s.store}
		s.store = store
		causes := make(chan error, 1)
		s.run(worker.Options{}, func(ctx context.Context, _ *worker.Job[payment]) error {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return errors.New("cut off")
		})
		s.add(sluice.EnqueueOptions{})
		synctest.Wait()
		store.renew.Store(true)
		begun := time.Now()
		if cause := <-causes; !errors.Is(cause, sluice.ErrLost) {
			t.Errorf("cause %v", cause)
		}
		if took := time.Since(begun); took > 62*time.Second {
			t.Errorf("told after %s, with a lease of 60s", took)
		}
		_ = s.end()
	})
}

func TestCompletionInATransactionThatWasNotCommittedIsAFailedAttempt(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(noJitter)
		s.run(worker.Options{}, func(_ context.Context, job *worker.Job[payment]) error {
			if job.Attempt() == 1 {
				job.MarkSettledInTx() // as CompleteTx does; the transaction never commits
			}
			return nil
		})
		job := s.becomes(s.add(sluice.EnqueueOptions{}), sluice.StateCompleted)
		attempts, err := s.client.Attempts(t.Context(), job.ID)
		if err != nil || len(attempts) != 1 || !strings.Contains(attempts[0].Error, "not committed") {
			t.Errorf("attempts %+v, %v", attempts, err)
		}
		_ = s.end()
	})
}

func TestJobsClaimedAheadOfASlowHandlerAreHandedBack(t *testing.T) {
	inShop(t, func(s *shop) {
		release := make(chan struct{})
		var slow atomic.Bool
		s.run(worker.Options{Slots: 1}, func(context.Context, *worker.Job[payment]) error {
			if slow.Load() {
				<-release
				return nil
			}
			time.Sleep(10 * time.Microsecond)
			return nil
		})
		for range 200 { // so quick that the worker claims many jobs ahead
			s.add(sluice.EnqueueOptions{})
		}
		time.Sleep(time.Second)
		slow.Store(true)
		var ids []sluice.ID
		var inserts []sluice.NewJob
		for range 50 {
			job, err := payments.NewJob(payment{}, sluice.EnqueueOptions{ID: sluice.NewID()})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, job.ID)
			inserts = append(inserts, job)
		}
		if _, err := s.client.EnqueueMany(t.Context(), inserts); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		held := 0
		for _, id := range ids {
			if s.job(id).State == sluice.StateClaimed {
				held++
			}
		}
		if held != 1 {
			t.Errorf("%d jobs are held by a worker of one slot", held)
		}
		close(release)
		for _, id := range ids {
			if job := s.becomes(id, sluice.StateCompleted); job.Attempts != 0 {
				t.Errorf("%d attempts", job.Attempts)
			}
		}
		_ = s.end()
	})
}

func TestRunRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	idle := worker.New(store, worker.Options{Logger: quiet})
	if err := idle.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "no handler") {
		t.Errorf("without a handler: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	twice := worker.New(store, worker.Options{Logger: quiet})
	worker.Handle(twice, payments, func(context.Context, *worker.Job[payment]) error { return nil }, worker.QueueOptions{})
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := twice.Run(ended); err != nil {
		t.Errorf("first run: %v", err)
	}
	if err := twice.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("second run: %v", err)
	}
	nameless := worker.New(store, worker.Options{Logger: quiet})
	worker.Handle(nameless, sluice.QueueOf[payment]("no blanks"), func(context.Context, *worker.Job[payment]) error { return nil }, worker.QueueOptions{})
	if err := nameless.Run(t.Context()); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("bad queue name: %v", err)
	}
	_ = store.Close()
	cut := worker.New(store, worker.Options{Logger: quiet})
	worker.Handle(cut, payments, func(context.Context, *worker.Job[payment]) error { return nil }, worker.QueueOptions{})
	if err := cut.Run(t.Context()); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("without a store: %v", err)
	}
}

func TestWorkerBeatsWhileItRuns(t *testing.T) {
	inShop(t, func(s *shop) {
		release := make(chan struct{})
		s.run(worker.Options{Slots: 3}, func(context.Context, *worker.Job[payment]) error {
			<-release
			return nil
		})
		s.add(sluice.EnqueueOptions{})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		holders, err := presence.Holders(t.Context(), s.store)
		if err != nil || len(holders) != 1 {
			t.Fatalf("holders %v, %v", holders, err)
		}
		h := holders[0]
		if h.Role != "worker" || h.Busy != 1 || h.Slots != 3 || time.Since(h.Seen) > 6*time.Second || len(h.Queues) != 1 {
			t.Errorf("holder %+v", h)
		}
		close(release)
		_ = s.end()
	})
}
