package dispatcher_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
)

// TestCyclesFarApartGoOnAfterAnOutage calls Once at intervals as long as a lease. Between the cycles, nothing renews the
// leases of held jobs.
func TestCyclesFarApartGoOnAfterAnOutage(t *testing.T) {
	inBank(t, func(b *bank) {
		b.engine.report.Retention = 72 * time.Hour
		ctx, stop := context.WithCancel(b.Context())
		b.stop = stop
		go func() { _ = b.upkeep().Run(ctx) }()
		d := dispatcher.New(b.store, dispatcher.Options{Engines: map[string]engine.Engine{"temporal": b.engine}, Logger: quiet})
		once := func() dispatcher.Cycle {
			done, err := d.Once(ctx, "payment")
			b.must(err)
			b.wait(time.Minute)
			return done
		}
		b.enqueue(1, sluice.EnqueueOptions{})
		b.engine.say(always(engine.ErrUnavailable, false))
		once()
		b.engine.say(nil)
		b.enqueue(5, sluice.EnqueueOptions{})
		for range 3 {
			once()
		}
		b.want(sluice.StateDispatched, 6)
		if done := once(); done.Held != 0 {
			b.Errorf("%d jobs are still held", done.Held)
		}
		if most := b.engine.most(); most != 1 {
			b.Errorf("a run was started %d times", most)
		}
	})
}
