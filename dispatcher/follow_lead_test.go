package dispatcher_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/upkeep"
)

// tend runs an upkeep with some engines until the test calls stop.
func (b *bank) tend(engines map[string]engine.Engine) (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- upkeep.New(b.store, upkeep.Options{Engines: engines, Logger: quiet}).Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}
}

// leader returns the holder that leads a task; empty: nobody leads it.
func (b *bank) leader(task string) string {
	b.Helper()
	leads, err := presence.Given(b.store).Leaders(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, lead := range leads {
		if lead.Task == task && lead.Held {
			return lead.Holder
		}
	}
	return ""
}

func (b *bank) dispatchOnce() {
	b.Helper()
	d := dispatcher.New(b.store, dispatcher.Options{Engines: map[string]engine.Engine{"temporal": b.engine}, Logger: quiet})
	if _, err := d.Once(b.Context(), "payment"); err != nil {
		b.Fatal(err)
	}
}

func TestRunsAreFollowedThoughAnUpkeepWithoutTheEngineLeads(t *testing.T) {
	inBank(t, func(b *bank) {
		defer b.tend(nil)() // an upkeep without engines, such as a worker process runs
		b.wait(time.Second + time.Millisecond)
		follows := map[string]engine.Engine{"temporal": b.engine}
		defer b.tend(follows)()
		b.wait(2 * time.Second)
		tends, followed := b.leader(presence.TaskUpkeep), b.leader(presence.FollowTask("temporal"))
		if tends == "" || followed == "" || tends == followed {
			b.Fatalf("%q leads upkeep, %q follows, want two", tends, followed)
		}
		b.enqueue(3, sluice.EnqueueOptions{})
		b.dispatchOnce()
		b.want(sluice.StateDispatched, 3)
		b.engine.end(engine.Completed)
		b.wait(5 * time.Second)
		b.want(sluice.StateCompleted, 3)
	})
}

func TestAnotherFollowsOnceTheOneThatDidHasEndedAndRunsThatEndedMeanwhileAreFound(t *testing.T) {
	inBank(t, func(b *bank) {
		follows := map[string]engine.Engine{"temporal": b.engine}
		stop := b.tend(follows)
		defer b.tend(nil)()
		b.wait(2 * time.Second)
		b.enqueue(3, sluice.EnqueueOptions{})
		b.dispatchOnce()
		stop()
		b.engine.end(engine.Completed)
		b.wait(time.Hour)
		b.want(sluice.StateDispatched, 3)
		defer b.tend(follows)()
		b.wait(5 * time.Second)
		b.want(sluice.StateCompleted, 3)
	})
}

func TestNobodyFollowingIsTheTroubleOfWhoLeadsUpkeep(t *testing.T) {
	inBank(t, func(b *bank) {
		b.enqueue(1, sluice.EnqueueOptions{})
		b.dispatchOnce()
		defer b.tend(map[string]engine.Engine{"another": b.engine})()
		b.wait(2 * time.Minute)
		if got := brokenConditions(b); !strings.Contains(got, "nobody follows the runs at the engine temporal (queues: payment)") {
			b.Errorf("its trouble is %q", got)
		}
		defer b.tend(map[string]engine.Engine{"temporal": b.engine})()
		b.wait(2 * time.Minute)
		if got := brokenConditions(b); got != "" {
			b.Errorf("its trouble is %q, though another follows", got)
		}
	})
}

// brokenConditions joins the texts of the conditions of all holders that are not silent.
func brokenConditions(b *bank) (all string) {
	b.Helper()
	holders, err := presence.Holders(b.Context(), b.store)
	if err != nil {
		b.Fatal(err)
	}
	for _, h := range holders {
		for _, c := range h.Conditions {
			if !h.Silent() {
				all += c.Text
			}
		}
	}
	return all
}
