package dispatcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/upkeep"
)

func (b *bank) cancel(ids ...sluice.ID) {
	b.Helper()
	if err := b.client.Cancel(b.Context(), ids, sluice.Act{By: "ada", Reason: "enough"}); err != nil {
		b.Fatal(err)
	}
}

func (b *bank) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// strays checks the number of orphan runs.
func (b *bank) strays(want int) {
	b.Helper()
	runs, err := engine.Given(b.store).OrphanRuns(b.Context(), "payment", engine.OrphanRun{}, 10_000)
	if err != nil {
		b.Fatal(err)
	}
	if len(runs) != want {
		b.Fatalf("%d orphan runs, want %d", len(runs), want)
	}
}

func refsOf(ids []sluice.ID) []string {
	refs := make([]string, len(ids))
	for i, id := range ids {
		refs[i] = "payment-" + id.String()
	}
	return refs
}

func TestRunOfACancelledJobIsEndedAndNoOther(t *testing.T) {
	inBank(t, func(b *bank) {
		b.set(func(s *sluice.Settings) { s.RunNamespace = "billing" })
		ids := b.enqueue(3, sluice.EnqueueOptions{})
		refs := refsOf(ids)
		b.run(1)
		b.wait(2 * time.Second)
		b.cancel(ids[0])
		b.set(func(s *sluice.Settings) { s.RunNamespace = "elsewhere" })
		b.wait(10 * time.Second)
		if b.engine.state(refs[0]) != engine.Cancelled || b.engine.state(refs[1]) != engine.Running {
			b.Errorf("the run is %s, another %s", b.engine.state(refs[0]), b.engine.state(refs[1]))
		}
		if asked, want := b.engine.asked(), []string{"billing: " + refs[0] + ": its job was cancelled"}; !slices.Equal(asked, want) {
			b.Errorf("asked %q, want %q", asked, want)
		}
		b.strays(0)
		b.want(sluice.StateDispatched, 2)
	})
}

func TestRunThatWasStartedAfterItsJobWasCancelledIsEndedToo(t *testing.T) {
	inBank(t, func(b *bank) {
		ids := b.enqueue(2, sluice.EnqueueOptions{})
		refs := refsOf(ids)
		b.abandon(false)
		b.cancel(ids...)
		b.run(1)
		b.wait(9 * time.Minute)
		b.strays(2)
		b.engine.Start(b.Context(), engine.Target{}, []engine.Run{{Ref: refs[0], Job: ids[0]}})
		b.wait(10 * time.Second)
		if state := b.engine.state(refs[0]); state != engine.Cancelled {
			b.Errorf("the run is %s", state)
		}
		b.strays(1)
		b.wait(time.Minute)
		b.strays(0) // the other run was never started
	})
}

func TestDispatcherThatStartsARunWhileItsJobIsCancelledLeavesNoneBehind(t *testing.T) {
	inBank(t, func(b *bank) {
		ids := b.enqueue(1, sluice.EnqueueOptions{})
		b.engine.say(func(engine.Run) (error, bool) {
			b.cancel(ids[0]) // while the engine starts the run
			return nil, true
		})
		b.run(1)
		b.wait(10 * time.Second)
		if state := b.engine.state(refsOf(ids)[0]); state != engine.Cancelled {
			b.Errorf("the run is %s", state)
		}
		b.want(sluice.StateCancelled, 1)
		b.strays(0)
	})
}

func TestRunsThatDoNotHeedAreAskedAgainAndKeepNobodyFromTheOthers(t *testing.T) {
	inBank(t, func(b *bank) {
		ids := b.enqueue(1000, sluice.EnqueueOptions{})
		b.run(1)
		b.wait(5 * time.Second)
		b.want(sluice.StateDispatched, 1000)
		b.engine.heed(nil, refsOf(ids[:600])...)
		b.cancel(ids...)
		b.wait(20 * time.Second)
		b.strays(600)
		b.engine.heed(engine.ErrUnavailable)
		b.wait(time.Minute)
		b.strays(600)
		b.engine.heed(nil)
		b.wait(20 * time.Second)
		b.strays(0)
	})
}

func TestRequeuedJobAndItsTenantWaitForARunThatDoesNotHeedItsCancel(t *testing.T) {
	inBank(t, func(b *bank) {
		b.set(func(s *sluice.Settings) { s.TenantConcurrency = 1 })
		ids := b.enqueue(2, sluice.EnqueueOptions{Tenant: "acme"})
		refs := refsOf(ids)
		b.engine.heed(nil, refs...)
		b.run(1)
		b.wait(3 * time.Second)
		first := slices.IndexFunc(refs, func(ref string) bool { return b.engine.state(ref) == engine.Running })
		b.cancel(ids[first])
		b.must(b.client.Requeue(b.Context(), ids[first:first+1], sluice.Act{By: "ada", Reason: "after all"}))
		b.wait(time.Hour)
		if began := b.engine.refs(); !slices.Equal(began, refs[first:first+1]) {
			b.Fatalf("%q began while the first run was open", began)
		}
		why, err := explain.Job(b.Context(), b.store, ids[first])
		b.must(err)
		if closed := why.Closed(); len(closed) == 0 || closed[0].Name != "open_run" || !strings.Contains(closed[0].Summary, refs[first]) {
			b.Errorf("it is said to wait for %+v", closed)
		}
		b.must(b.client.Terminate(b.Context(), ids[first:first+1], sluice.Act{By: "ada", Reason: "it hangs"}))
		b.wait(10 * time.Second)
		if state := b.engine.state(refs[first]); state != engine.Terminated {
			b.Errorf("the first run is %s", state)
		}
		b.strays(0)
		if began := b.engine.refs(); len(began) != 2 {
			b.Errorf("%q began", began)
		}
		b.engine.end(engine.Completed)
		b.wait(10 * time.Second)
		b.engine.end(engine.Completed)
		b.wait(10 * time.Second)
		b.want(sluice.StateCompleted, 2)
		if began := b.engine.refs(); len(began) != 3 || !slices.Contains(began, refs[first]+"-g2") {
			b.Errorf("%q began", began)
		}
	})
}

func TestRunThatTheEngineHadAndHasNoMoreHasEnded(t *testing.T) {
	inBank(t, func(b *bank) {
		ids := b.enqueue(1, sluice.EnqueueOptions{})
		b.engine.heed(nil, refsOf(ids)...)
		b.run(1)
		b.wait(3 * time.Second)
		b.cancel(ids...)
		b.must(b.client.Requeue(b.Context(), ids, sluice.Act{By: "ada", Reason: "after all"}))
		b.wait(10 * time.Second)
		b.strays(1)
		b.engine.lose(refsOf(ids)...) // the run's retention has passed, or the engine was restored from an old backup
		b.wait(10 * time.Second)
		b.strays(0)
		b.want(sluice.StateDispatched, 1)
	})
}

// unreadable is an engine that cannot read some of its runs, as after the loss of a part of its database.
type unreadable struct {
	*scripted
	refs []string
}

func (u *unreadable) Outcomes(ctx context.Context, target engine.Target, refs []string) ([]engine.Outcome, error) {
	out, err := u.scripted.Outcomes(ctx, target, refs)
	for i := range out {
		if slices.Contains(u.refs, refs[i]) {
			out[i], err = engine.Outcome{Ref: refs[i]}, engine.ErrUnavailable
		}
	}
	return out, err
}

func TestRunThatTheEngineCannotReadKeepsNoOtherOfACancelledJobOpen(t *testing.T) {
	inBank(t, func(b *bank) {
		ids := b.enqueue(3, sluice.EnqueueOptions{})
		refs := refsOf(ids)
		ctx, stop := context.WithCancel(b.Context())
		b.stop = stop
		b.dispatch(ctx)
		b.wait(3 * time.Second)
		b.want(sluice.StateDispatched, 3)
		b.cancel(ids...)
		broken := &unreadable{scripted: b.engine, refs: refs[:1]}
		options := upkeep.Options{Engines: map[string]engine.Engine{"temporal": broken}, Logger: quiet}
		go func() { _ = upkeep.New(b.store, options).Run(ctx) }()
		b.wait(time.Hour)
		if b.engine.state(refs[1]) != engine.Cancelled || b.engine.state(refs[2]) != engine.Cancelled {
			b.Errorf("the other runs are %s and %s", b.engine.state(refs[1]), b.engine.state(refs[2]))
		}
		if state := b.engine.state(refs[0]); state != engine.Running {
			b.Errorf("the unreadable run is %s", state)
		}
		b.strays(1)
	})
}

func TestRunOfAnotherJobThatHasTheRefByNowGoesOn(t *testing.T) {
	inBank(t, func(b *bank) {
		b.set(func(s *sluice.Settings) { s.RunRef = "pay-{key}" })
		first := b.enqueue(1, sluice.EnqueueOptions{Key: "invoice-7"})
		claimed, err := b.store.Claim(b.Context(), sluice.ClaimRequest{Queue: "payment", Limit: 1, Holder: "dead", Lease: time.Minute, Token: sluice.NewToken(), Engine: "temporal"})
		if err != nil || len(claimed.Jobs) != 1 {
			b.Fatal(claimed, err)
		}
		intent := engine.Intent{ID: first[0], Token: claimed.Jobs[0].Token, Ref: "pay-invoice-7", Engine: "temporal", Lease: time.Minute}
		if errs, err := engine.Given(b.store).RecordIntent(b.Context(), []engine.Intent{intent}); errors.Join(append(errs, err)...) != nil {
			b.Fatal(errs, err)
		}
		b.cancel(first...)
		next := b.enqueue(1, sluice.EnqueueOptions{Key: "invoice-7"})
		b.run(1)
		b.wait(15 * time.Minute)
		if job := b.job(next[0]); job.State != sluice.StateDispatched || b.engine.state("pay-invoice-7") != engine.Running {
			b.Errorf("the other job is %s, its run %s", job.State, b.engine.state("pay-invoice-7"))
		}
		if asked := b.engine.asked(); len(asked) > 0 {
			b.Errorf("asked to end: %q", asked)
		}
		b.strays(0)
	})
}

// batches lists the cycles of the audit's batch entries, the newest first.
func (b *bank) batches() (all []dispatcher.Cycle) {
	b.Helper()
	entries, err := b.client.Audit(b.Context(), sluice.AuditFilter{Object: audit.ObjectQueue, Name: "payment", Limit: 1000})
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range entries {
		if e.Event != audit.EventBatch {
			continue
		}
		var done dispatcher.Cycle
		if err := json.Unmarshal(e.After, &done); err != nil || e.Actor == "" {
			b.Fatalf("the audit has %+v: %v", e, err)
		}
		all = append(all, done)
	}
	return all
}

func TestAuditTellsOfEachCycleThatClaimed(t *testing.T) {
	inBank(t, func(b *bank) {
		b.set(func(s *sluice.Settings) { s.Batch = 3 })
		ids := b.enqueue(4, sluice.EnqueueOptions{})
		b.engine.pause = func() { time.Sleep(time.Second) }
		b.engine.say(func(run engine.Run) (error, bool) {
			if run.Job == ids[0] {
				return engine.ErrRefused, false
			}
			return nil, true
		})
		b.run(1)
		b.wait(time.Minute)
		told := b.batches()
		for i := range told {
			told[i].Took = 0
		}
		want := []dispatcher.Cycle{ // here the engine alone takes time
			{Claimed: 1, Dispatched: 1, Starting: time.Second}, {Claimed: 3, Dispatched: 2, Buried: 1, Starting: 3 * time.Second},
		}
		if !slices.Equal(told, want) {
			b.Errorf("told of %+v, want %+v", told, want)
		}
	})
}

// mute is a store whose audit takes no new entries.
type mute struct{ sluice.Store }

// Unwrap returns the decorated store.
func (s mute) Unwrap() sluice.Store { return s.Store }

func (mute) AppendAudit(context.Context, []sluice.AuditEntry) error {
	return fmt.Errorf("note: %w", sluice.ErrUnavailable)
}

func TestAuditThatCannotBeToldStopsNoBatch(t *testing.T) {
	inBank(t, func(b *bank) {
		b.store = mute{b.store}
		b.enqueue(3, sluice.EnqueueOptions{})
		b.run(1)
		b.wait(3 * time.Second)
		b.want(sluice.StateDispatched, 3)
		if told := b.batches(); len(told) > 0 {
			b.Errorf("told of %+v", told)
		}
	})
}
