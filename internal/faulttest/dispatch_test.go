package faulttest

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

// TestLostAnswersToDispatchersChangeNothing cuts the store's answers to a dispatcher and to a follower.
func TestLostAnswersToDispatchersChangeNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store, p := behindProxy(t)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	receipt, err := client.Enqueue(ctx, sluice.NewJob{Queue: "q", Payload: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	claim := func() *sluice.Claim {
		t.Helper()
		return claimOne(t, store)
	}
	intend := func(c *sluice.Claim) {
		t.Helper()
		errs, err := engine.Given(store).RecordIntent(ctx, []engine.Intent{{ID: c.ID, Token: c.Token, Ref: "q-" + c.ID.String(), Engine: "temporal", Lease: time.Minute}})
		if err != nil || errs[0] != nil {
			t.Fatalf("intend: %v, %v", errs, err)
		}
	}
	settle := func(c *sluice.Claim, event sluice.Event) {
		t.Helper()
		errs, err := store.Settle(ctx, []sluice.Settlement{{ID: c.ID, Token: c.Token, Event: event, Holder: c.Holder}})
		if err != nil || errs[0] != nil {
			t.Fatalf("%s: %v, %v", event, errs, err)
		}
	}
	is := func(state sluice.State, engine string, recoveries int) {
		t.Helper()
		job, err := client.Job(ctx, receipt.ID)
		if err != nil || job.State != state || job.Engine != engine || job.Recoveries != recoveries {
			t.Fatalf("the job is %s at %q with %d recoveries, %v; want %s at %q with %d", job.State, job.Engine, job.Recoveries, err, state, engine, recoveries)
		}
	}
	lost := int32(0)
	cut := func(text string, do func()) {
		t.Helper()
		p.cutAnswerTo(text)
		do()
		if lost++; p.cuts.Load() != lost {
			t.Fatalf("the answer to %q was not cut", text)
		}
	}
	c := claim() // prepares every statement, so that only answers to executions are cut below
	intend(c)
	settle(c, sluice.EventRecover)
	c = claim()
	intend(c)
	settle(c, sluice.EventDispatch)
	settle(c, sluice.EventDoubt)
	if err := client.Requeue(ctx, []sluice.ID{receipt.ID}, sluice.Act{By: "ada", Reason: "again"}); err != nil {
		t.Fatal(err)
	}

	c = claim()
	cut("set ref = g.ref, engine = g.engine", func() { intend(c) })
	is(sluice.StateClaimed, "temporal", 0)
	cut("set state = 'queued', in_tenant_queue = false, holder = null", func() { settle(c, sluice.EventRecover) })
	is(sluice.StateQueued, "", 1)
	c = claim()
	intend(c)
	cut("set state = $5::text", func() { settle(c, sluice.EventDispatch) })
	is(sluice.StateDispatched, "temporal", 1)
	cut("delete from sluice.live l", func() { settle(c, sluice.EventComplete) })
	is(sluice.StateCompleted, "", 1)
}
