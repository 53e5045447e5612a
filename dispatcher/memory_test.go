package dispatcher_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

// TestNoRunIsAskedForAgainThatItsEngineMayHaveForgotten lets the engine take starts, but loses its answers for longer
// than the engine keeps runs.
func TestNoRunIsAskedForAgainThatItsEngineMayHaveForgotten(t *testing.T) {
	for name, gone := range map[string]error{
		"only answers of starts are lost":      nil,
		"nothing reaches the engine meanwhile": fmt.Errorf("ask: %w", engine.ErrUnavailable),
	} {
		t.Run(name, func(t *testing.T) {
			inBank(t, func(b *bank) {
				b.engine.report.Retention = 20 * time.Minute
				ids := b.enqueue(3, sluice.EnqueueOptions{})
				b.engine.say(always(engine.ErrUnavailable, true))
				b.run(2)
				b.wait(3 * time.Second)
				b.engine.cutOff(gone)
				b.wait(15 * time.Minute)
				b.want(sluice.StateClaimed, 3)
				b.wait(20 * time.Minute)
				b.engine.forget()
				b.engine.say(nil)
				b.engine.cutOff(nil)
				b.wait(3 * time.Minute)
				if n := b.engine.most(); n != 1 {
					b.Errorf("a run was started %d times", n)
				}
				b.want(sluice.StateUncertain, 3)
				b.unburnt(ids)
			})
		})
	}
}

func TestRunThatItsEngineStillKnowsIsAskedForAgainAfterAnOutageOfAnyLength(t *testing.T) {
	inBank(t, func(b *bank) {
		b.engine.report.Retention = 20 * time.Minute
		ids := b.enqueue(3, sluice.EnqueueOptions{})
		b.engine.say(always(engine.ErrUnavailable, false))
		b.run(1)
		b.wait(3 * time.Second)
		b.engine.cutOff(engine.ErrUnavailable)
		b.wait(15 * time.Minute)
		b.engine.say(nil)
		b.engine.cutOff(nil)
		b.wait(20 * time.Second)
		b.want(sluice.StateDispatched, 3)
		b.unburnt(ids)
	})
}

// TestRetentionThatWasShortenedCounts shortens the engine's retention after starts were asked for.
func TestRetentionThatWasShortenedCounts(t *testing.T) {
	inBank(t, func(b *bank) {
		b.engine.report.Retention = 24 * time.Hour
		b.enqueue(1, sluice.EnqueueOptions{})
		b.engine.say(always(engine.ErrUnavailable, true))
		b.run(1)
		b.wait(3 * time.Second)
		b.engine.cutOff(engine.ErrUnavailable)
		b.wait(20 * time.Minute)
		b.engine.forget()
		b.engine.keeps(10 * time.Minute)
		b.engine.say(nil)
		b.engine.cutOff(nil)
		b.wait(3 * time.Minute)
		b.want(sluice.StateUncertain, 1)
		if n := b.engine.most(); n != 1 {
			b.Errorf("the run was started %d times", n)
		}
	})
}

// deaf is a store that refuses to renew leases while off is set.
type deaf struct {
	sluice.Store
	off atomic.Bool
}

// Unwrap returns the decorated store.
func (d *deaf) Unwrap() sluice.Store { return d.Store }

func (d *deaf) Renew(ctx context.Context, renewals []sluice.Renewal) ([]sluice.ID, error) {
	if d.off.Load() {
		return nil, sluice.ErrUnavailable
	}
	return d.Store.Renew(ctx, renewals)
}

// TestProcessThatStoodStillBeforeACallDoesNotMakeIt lets 50 s of a lease of 60 s pass between the decision to start a
// run and the call.
func TestProcessThatStoodStillBeforeACallDoesNotMakeIt(t *testing.T) {
	inBank(t, func(b *bank) {
		store := &deaf{Store: b.store}
		b.store = store
		id := b.enqueue(1, sluice.EnqueueOptions{})[0]
		stood := false
		b.engine.pause = func() {
			if stood {
				return
			}
			stood = true
			store.off.Store(true)
			time.Sleep(50 * time.Second) // the lease is 60 s
		}
		ctx, stop := context.WithCancel(b.Context())
		b.stop = stop
		b.dispatch(ctx)
		b.wait(54 * time.Second)
		if n := b.engine.most(); n != 0 {
			b.Errorf("a run was started %d times by a process that may have lost it", n)
		}
		store.off.Store(false)
		b.wait(10 * time.Second)
		if job := b.job(id); job.State != sluice.StateDispatched || b.engine.most() != 1 {
			b.Errorf("the job is %s after the lease was renewed, started %d times", job.State, b.engine.most())
		}
	})
}

// TestUpkeepThatStoodStillDoesNotTakeAForgottenRunForOneThatNeverWas lets time pass after upkeep has read the clock and
// before the engine answers.
func TestUpkeepThatStoodStillDoesNotTakeAForgottenRunForOneThatNeverWas(t *testing.T) {
	inBank(t, func(b *bank) {
		b.engine.report.Retention = time.Hour
		id := b.enqueue(1, sluice.EnqueueOptions{})[0]
		b.abandon(true)
		b.wait(2 * time.Minute)
		b.engine.pause = func() {
			time.Sleep(3 * time.Hour)
			clear(b.engine.runs)
		}
		if _, err := b.upkeep().Once(b.Context(), true); err != nil {
			b.Fatal(err)
		}
		if job := b.job(id); job.State != sluice.StateUncertain {
			b.Errorf("the job is %s", job.State)
		}
	})
}

func TestRefusalAfterADoubtSaysNothingOfBefore(t *testing.T) {
	inBank(t, func(b *bank) {
		b.enqueue(1, sluice.EnqueueOptions{})
		b.engine.say(always(engine.ErrUnavailable, true))
		b.run(1)
		b.wait(2 * time.Second)
		b.engine.say(always(engine.ErrRefused, false))
		b.wait(2 * time.Minute)
		b.want(sluice.StateDead, 0)
		b.want(sluice.StateDispatched, 1)
	})
}
