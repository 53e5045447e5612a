package dispatcher_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

// unsettled is a store that takes no settlements until an instant.
type unsettled struct {
	sluice.Store
	until time.Time
}

// Unwrap returns the decorated store.
func (u *unsettled) Unwrap() sluice.Store { return u.Store }

func (u *unsettled) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	if time.Now().Before(u.until) {
		return nil, errors.New("connection refused")
	}
	return u.Store.Settle(ctx, settlements)
}

// TestDispatcherThatEndsSettlesOnceTheStoreIsBack ends a dispatcher while the store takes no settlements. Nobody else
// settles here.
func TestDispatcherThatEndsSettlesOnceTheStoreIsBack(t *testing.T) {
	inBank(t, func(b *bank) {
		b.store = &unsettled{b.store, time.Now().Add(10 * time.Second)}
		b.enqueue(100, sluice.EnqueueOptions{})
		ctx, end := context.WithCancel(b.Context())
		asked := 0
		b.engine.say(func(engine.Run) (error, bool) {
			if asked++; asked > 50 {
				return engine.ErrBusy, false
			}
			return nil, true
		})
		b.dispatch(ctx)
		b.wait(3 * time.Second)
		end()
		b.wait(20 * time.Second)
		b.want(sluice.StateClaimed, 0)
		b.want(sluice.StateDispatched, 50)
		b.want(sluice.StateQueued, 50)
	})
}
