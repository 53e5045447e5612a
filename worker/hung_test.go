package worker_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/worker"
)

// hung is a store that answers nothing for a while: each call takes its whole deadline.
type hung struct {
	sluice.Store
	processes
	away atomic.Bool
}

type processes = presence.Store

// hang makes the store of a shop one that can hang.
func (s *shop) hang() *hung {
	store := &hung{Store: s.store, processes: presence.Given(s.store)}
	s.store = store
	return store
}

// Unwrap returns the decorated store.
func (h *hung) Unwrap() sluice.Store { return h.Store }

// callTime is the deadline of a call of a store.
const callTime = 10 * time.Second

// answers waits for the answer of a store that hangs.
func (h *hung) answers(ctx context.Context) error {
	if !h.away.Load() {
		return nil
	}
	select {
	case <-time.After(callTime):
		return fmt.Errorf("gave up after %s: %w", callTime, sluice.ErrUnavailable)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *hung) Claim(ctx context.Context, r sluice.ClaimRequest) (sluice.Claimed, error) {
	if err := h.answers(ctx); err != nil {
		return sluice.Claimed{}, err
	}
	return h.Store.Claim(ctx, r)
}

func (h *hung) Renew(ctx context.Context, r []sluice.Renewal) ([]sluice.ID, error) {
	if err := h.answers(ctx); err != nil {
		return nil, err
	}
	return h.Store.Renew(ctx, r)
}

func (h *hung) Settle(ctx context.Context, s []sluice.Settlement) ([]error, error) {
	if err := h.answers(ctx); err != nil {
		return nil, err
	}
	return h.Store.Settle(ctx, s)
}

func (h *hung) Heartbeat(ctx context.Context, holder presence.Holder) (presence.Instruction, error) {
	if err := h.answers(ctx); err != nil {
		return presence.Instruction{}, err
	}
	return h.processes.Heartbeat(ctx, holder)
}

func (h *hung) Deregister(ctx context.Context, id string) error {
	if err := h.answers(ctx); err != nil {
		return err
	}
	return h.processes.Deregister(ctx, id)
}

// untilTold is a handler that waits until its context ends, and notes when and why.
func untilTold(told chan<- error) worker.Handler[payment] {
	return func(ctx context.Context, _ *worker.Job[payment]) error {
		<-ctx.Done()
		told <- context.Cause(ctx)
		return errors.New("cut off")
	}
}

func TestHandlerIsToldAtTheEndOfItsLeaseAlsoByAStoreThatHangs(t *testing.T) {
	for _, lease := range []time.Duration{3 * time.Second, 12 * time.Second, time.Minute} {
		t.Run(lease.String(), func(t *testing.T) {
			inShop(t, func(s *shop) {
				s.settings(func(q *sluice.Settings) { q.Lease = lease })
				store := s.hang()
				told := make(chan error, 1)
				s.run(worker.Options{}, untilTold(told))
				id := s.add(sluice.EnqueueOptions{})
				time.Sleep(9900 * time.Millisecond) // a heartbeat is due soon
				until := s.job(id).LeaseUntil
				store.away.Store(true)
				if cause := <-told; !errors.Is(cause, sluice.ErrLost) {
					t.Errorf("the cause is %v", cause)
				}
				if late := time.Since(until); late > time.Second {
					t.Errorf("told %s after the end of the lease", late)
				}
				store.away.Store(false)
				_ = s.end()
			})
		})
	}
}

// dull is a store that takes most of a call's deadline to say that a claim is lost, and all of it to say why.
type dull struct {
	sluice.Store
	on atomic.Bool
}

// Unwrap returns the decorated store.
func (d *dull) Unwrap() sluice.Store { return d.Store }

func (d *dull) wait(ctx context.Context, wait time.Duration) error {
	if !d.on.Load() {
		return nil
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *dull) Renew(ctx context.Context, r []sluice.Renewal) ([]sluice.ID, error) {
	if err := d.wait(ctx, callTime-time.Second); err != nil {
		return nil, err
	}
	return d.Store.Renew(ctx, r)
}

func (d *dull) Job(ctx context.Context, id sluice.ID) (sluice.Job, error) {
	if err := d.wait(ctx, callTime); err != nil {
		return sluice.Job{}, err
	}
	return d.Store.Job(ctx, id)
}

// TestAHandlerThatLostItsJobDoesNotDelayWhatAnotherIsTold has a handler that goes on after the end of its lease.
func TestAHandlerThatLostItsJobDoesNotDelayWhatAnotherIsTold(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(func(q *sluice.Settings) { q.Lease = 10 * time.Second })
		store, release, told := &dull{Store: s.store}, make(chan struct{}), make(chan error, 1)
		inner := s.store
		s.store = store
		s.run(worker.Options{Slots: 2}, func(ctx context.Context, job *worker.Job[payment]) error {
			if job.Tenant == "deaf" {
				<-release
				return nil
			}
			return untilTold(told)(ctx, job)
		})
		id := s.add(sluice.EnqueueOptions{Tenant: "deaf"})
		s.becomes(id, sluice.StateClaimed)
		store.on.Store(true)
		time.Sleep(10500 * time.Millisecond) // its lease is over
		if err := s.client.Cancel(s.Context(), []sluice.ID{id}, sluice.Act{By: "test"}); err != nil {
			s.Error(err)
		}
		synctest.Wait() // the worker asks the store
		s.add(sluice.EnqueueOptions{})
		begun := time.Now()
		time.AfterFunc(10500*time.Millisecond, func() { _, _ = inner.Recover(s.Context(), payments.Name(), 10, "test") })
		if cause := <-told; !errors.Is(cause, sluice.ErrLost) {
			s.Errorf("the cause is %v", cause)
		}
		if took := time.Since(begun); took > 11*time.Second {
			s.Errorf("a handler was told %s after it began, with a lease of 10 s", took)
		}
		store.on.Store(false)
		close(release)
		_ = s.end()
	})
}

// TestLeasesAreRenewedWhileOutcomesCannotBeWritten runs one long job beside thousands of quick ones, whose outcomes wait
// for a row that somebody locks.
func TestLeasesAreRenewedWhileOutcomesCannotBeWritten(t *testing.T) {
	inShop(t, func(s *shop) {
		s.settings(func(q *sluice.Settings) { q.Lease = 10 * time.Second })
		store := &failing{Store: s.store}
		s.store = store
		release := make(chan struct{})
		s.run(worker.Options{Slots: 2}, func(_ context.Context, job *worker.Job[payment]) error {
			if job.Tenant == "long" {
				<-release
			}
			time.Sleep(2 * time.Microsecond)
			return nil
		})
		id := s.add(sluice.EnqueueOptions{Tenant: "long"})
		s.becomes(id, sluice.StateClaimed)
		s.addMany(2000) // so quick that the worker claims many ahead
		time.Sleep(time.Second)
		store.settle.Store(true)
		s.addMany(5000)
		for range 60 {
			time.Sleep(time.Second)
			if job := s.job(id); !job.LeaseUntil.After(time.Now()) {
				t.Errorf("the lease of a running job ended at %s, and it is %s", job.LeaseUntil, time.Now())
				break
			}
		}
		store.settle.Store(false)
		close(release)
		s.becomes(id, sluice.StateCompleted)
		synctest.Wait()
		_ = s.end()
	})
}
