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
