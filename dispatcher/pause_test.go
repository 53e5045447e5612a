package dispatcher_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/tenancy"
)

// TestNothingIsStartedASecondAfterAPause pauses a queue, and then a tenant, in the middle of a batch that takes 25 s.
func TestNothingIsStartedASecondAfterAPause(t *testing.T) {
	act := sluice.Act{By: "ada", Reason: "stop"}
	for name, c := range map[string]struct{ pause, resume func(b *bank) error }{
		"the queue is paused": {
			func(b *bank) error { return b.client.Pause(b.Context(), "payment", act) },
			func(b *bank) error { return b.client.Resume(b.Context(), "payment", act) },
		},
		"the tenant is paused": {
			func(b *bank) error {
				_, err := tenancy.Pause(b.Context(), b.store, "payment", "acme", 0, act)
				return err
			},
			func(b *bank) error { return tenancy.Resume(b.Context(), b.store, "payment", "acme", act) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBank(t, func(b *bank) {
				b.set(func(s *sluice.Settings) { s.Batch = 500 })
				ids := b.enqueue(500, sluice.EnqueueOptions{Tenant: "acme"})
				var last time.Time
				b.engine.pause = func() { time.Sleep(50 * time.Millisecond) }
				b.engine.say(func(engine.Run) (error, bool) {
					last = time.Now()
					return nil, true
				})
				ctx, stop := context.WithCancel(b.Context())
				b.stop = stop
				b.dispatch(ctx)
				b.wait(3300 * time.Millisecond)
				paused := time.Now()
				if err := c.pause(b); err != nil {
					b.Fatal(err)
				}
				b.wait(time.Minute)
				if late := last.Sub(paused); late > time.Second {
					b.Errorf("a run was started %s after the pause", late)
				}
				b.want(sluice.StateClaimed, 0)
				if started := b.count(sluice.StateDispatched); started < 50 || started > 100 {
					b.Errorf("%d runs were started by then, want those of some four seconds", started)
				}
				b.unburnt(ids)
				if err := c.resume(b); err != nil {
					b.Fatal(err)
				}
				b.wait(time.Minute)
				b.want(sluice.StateDispatched, 500)
				b.unburnt(ids)
			})
		})
	}
}

// unread is a store that cannot read settings while off is set.
type unread struct {
	sluice.Store
	off atomic.Bool
}

// Unwrap returns the decorated store.
func (u *unread) Unwrap() sluice.Store { return u.Store }

func (u *unread) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	if u.off.Load() {
		return nil, errors.Join(sluice.ErrUnavailable)
	}
	return u.Store.Queues(ctx, filter)
}

// TestNothingIsStartedWhileNobodyKnowsWhetherItIsPaused makes the settings unreadable in the middle of a batch.
func TestNothingIsStartedWhileNobodyKnowsWhetherItIsPaused(t *testing.T) {
	inBank(t, func(b *bank) {
		store := &unread{Store: b.store}
		b.store = store
		ids := b.enqueue(200, sluice.EnqueueOptions{})
		var last atomic.Pointer[time.Time]
		b.engine.pause = func() { time.Sleep(50 * time.Millisecond) }
		b.engine.say(func(engine.Run) (error, bool) {
			last.Store(new(time.Now()))
			return nil, true
		})
		ctx, stop := context.WithCancel(b.Context())
		b.stop = stop
		b.dispatch(ctx)
		b.wait(3 * time.Second)
		hidden := time.Now()
		store.off.Store(true)
		b.wait(20 * time.Second)
		if late := last.Load().Sub(hidden); late > time.Second {
			b.Errorf("a run was started after %s without settings", late)
		}
		store.off.Store(false)
		b.wait(20 * time.Second)
		b.want(sluice.StateDispatched, 200)
		b.unburnt(ids)
	})
}
