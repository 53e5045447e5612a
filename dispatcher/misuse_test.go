package dispatcher_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/forward"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
)

// TestRunSaysWhatIsWrongWithItsOptions covers dispatcher, upkeep and forwarder.
func TestRunSaysWhatIsWrongWithItsOptions(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	none := map[string]engine.Engine{"temporal": nil}
	for what, run := range map[string]func(context.Context) error{
		"dispatcher: invalid option Poll: -1s must be 0":        dispatcher.New(store, dispatcher.Options{Poll: -time.Second}).Run,
		"dispatcher: invalid option Engines: temporal is nil":   dispatcher.New(store, dispatcher.Options{Engines: none}).Run,
		"dispatcher: invalid store: the store is nil":           dispatcher.New(nil, dispatcher.Options{}).Run,
		"upkeep: invalid option Interval: -1s must be 0":        upkeep.New(store, upkeep.Options{Interval: -time.Second}).Run,
		"upkeep: invalid option Engines: temporal is nil":       upkeep.New(store, upkeep.Options{Engines: none}).Run,
		"upkeep: invalid store: the store is nil":               upkeep.New(nil, upkeep.Options{}).Run,
		"forwarder: invalid option Batch: -3 must be 0":         forward.New(store, store, forward.Options{Batch: -3, Queues: []string{"q"}}).Run,
		"forwarder: centre: invalid store: the store is nil":    forward.New(store, nil, forward.Options{Queues: []string{"q"}}).Run,
		"name those whose jobs are to be forwarded":             forward.New(store, store, forward.Options{}).Run,
		"forwarder: invalid option CallTimeout: -1ns must be 0": forward.New(store, store, forward.Options{CallTimeout: -1, Queues: []string{"q"}}).Run,
	} {
		if err := run(t.Context()); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("Run gives %v, want an error with %q", err, what)
		}
	}
}

// TestRunThatIsCalledTwiceSaysSo calls Run a second time, first while the first call runs and then after it has ended.
func TestRunThatIsCalledTwiceSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		for name, run := range map[string]func(context.Context) error{
			"dispatcher": dispatcher.New(store, dispatcher.Options{Logger: quiet}).Run,
			"upkeep":     upkeep.New(store, upkeep.Options{Logger: quiet}).Run,
			"forwarder":  forward.New(store, memory.New(memory.Options{}), forward.Options{Queues: []string{"q"}, Logger: quiet}).Run,
		} {
			for range 2 {
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- run(ctx) }()
				synctest.Wait()
				if err := run(ctx); err == nil || !strings.Contains(err.Error(), "it runs already") {
					t.Errorf("%s: the second Run gives %v", name, err)
				}
				stop()
				if err := <-ended; err != nil {
					t.Errorf("%s: the first Run gives %v", name, err)
				}
			}
		}
	})
}
