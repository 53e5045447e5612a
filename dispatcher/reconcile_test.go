package dispatcher_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/upkeep"
)

func (b *bank) upkeep() *upkeep.Upkeep {
	return upkeep.New(b.store, upkeep.Options{Engines: map[string]engine.Engine{"temporal": b.engine}, Logger: quiet})
}

func TestReconcileTellsWhatBecomesOfJobsAndDoesIt(t *testing.T) {
	inBank(t, func(b *bank) {
		asked := b.enqueue(2, sluice.EnqueueOptions{})
		b.abandon(true)
		b.engine.end(engine.Completed)
		running := b.enqueue(1, sluice.EnqueueOptions{})
		b.abandon(true)
		never := b.enqueue(1, sluice.EnqueueOptions{})
		b.abandon(false)
		reconcile := func(what upkeep.Reconciliation) map[sluice.ID]sluice.Event {
			events := make(map[sluice.ID]sluice.Event)
			what.Queue = "payment"
			if err := b.upkeep().Reconcile(b.Context(), what, func(j upkeep.Judged) error {
				events[j.Job.ID] = j.Event
				return nil
			}); err != nil {
				b.Fatal(err)
			}
			return events
		}
		if held := reconcile(upkeep.Reconciliation{}); len(held) != 0 {
			b.Fatalf("claims that are held are judged: %v", held)
		}
		b.wait(2 * time.Minute)
		want := map[sluice.ID]sluice.Event{
			asked[0]: sluice.EventComplete, asked[1]: sluice.EventComplete, running[0]: sluice.EventDispatch, never[0]: sluice.EventRecover,
		}
		for _, dryRun := range []bool{true, false} {
			got := reconcile(upkeep.Reconciliation{DryRun: dryRun})
			for id, event := range want {
				if got[id] != event {
					b.Errorf("dry run %t: job %s is judged %q, want %q", dryRun, id, got[id], event)
				}
			}
			if claimed := b.count(sluice.StateClaimed); dryRun != (claimed == 4) {
				b.Errorf("dry run %t: %d jobs are claimed", dryRun, claimed)
			}
		}
		b.want(sluice.StateCompleted, 2)
		b.want(sluice.StateDispatched, 1)
		b.want(sluice.StateQueued, 1)
		if one := reconcile(upkeep.Reconciliation{Jobs: running, DryRun: true}); len(one) != 1 {
			b.Errorf("of one job, %v are judged", one)
		}
	})
}

func TestReconcileGoesOnPastARunThatTheEngineCannotRead(t *testing.T) {
	inBank(t, func(b *bank) {
		ids := b.enqueue(1200, sluice.EnqueueOptions{})
		ctx, stop := context.WithCancel(b.Context())
		b.stop = stop
		b.dispatch(ctx)
		b.wait(10 * time.Second)
		b.engine.end(engine.Completed)
		slices.SortFunc(ids, func(one, other sluice.ID) int { return slices.Compare(one[:], other[:]) })
		broken := &unreadable{scripted: b.engine, refs: refsOf(ids[:1])}
		u := upkeep.New(b.store, upkeep.Options{Engines: map[string]engine.Engine{"temporal": broken}, Logger: quiet})
		judged := 0
		err := u.Reconcile(b.Context(), upkeep.Reconciliation{Queue: "payment"}, func(upkeep.Judged) error { judged++; return nil })
		if !errors.Is(err, engine.ErrUnavailable) || judged != 1199 {
			b.Errorf("%d jobs are judged, the error is %v", judged, err)
		}
		b.want(sluice.StateDispatched, 1)
	})
}

func TestOverdueClaimsThatNobodyHereCanAskForHoldUpNoOthers(t *testing.T) {
	inBank(t, func(b *bank) {
		b.set(func(s *sluice.Settings) { s.RecoverBatch = 2 })
		b.enqueue(4, sluice.EnqueueOptions{})
		b.abandonAs(false, func(s *sluice.Settings) { s.Engine = "elsewhere" })
		b.enqueue(3, sluice.EnqueueOptions{})
		b.abandon(false)
		ctx, stop := context.WithCancel(b.Context())
		b.stop = stop
		go func() { _ = b.upkeep().Run(ctx) }()
		b.wait(10 * time.Minute)
		b.want(sluice.StateQueued, 3)
		b.want(sluice.StateClaimed, 4)
	})
}

func TestReconcileOfAQueueThatNobodyKnows(t *testing.T) {
	inBank(t, func(b *bank) {
		err := b.upkeep().Reconcile(b.Context(), upkeep.Reconciliation{Queue: "unknown"}, func(upkeep.Judged) error { return nil })
		if !errors.Is(err, sluice.ErrNotFound) {
			b.Errorf("the error is %v", err)
		}
	})
}

func TestUpkeepThatDoesEverythingOnceFollowsRuns(t *testing.T) {
	inBank(t, func(b *bank) {
		b.enqueue(3, sluice.EnqueueOptions{})
		b.abandon(true)
		b.engine.end(engine.Completed)
		b.wait(2 * time.Minute)
		done, err := b.upkeep().Once(b.Context(), true)
		if err != nil || done.Followed != 3 {
			b.Errorf("followed %d runs, %v", done.Followed, err)
		}
		b.want(sluice.StateCompleted, 3)
	})
}

func TestAskSaysHowTheRunOfAJobIs(t *testing.T) {
	inBank(t, func(b *bank) {
		id := b.enqueue(1, sluice.EnqueueOptions{})[0]
		if _, err := b.upkeep().Ask(b.Context(), b.job(id)); !errors.Is(err, sluice.ErrNotFound) {
			b.Errorf("of a job without a run: %v", err)
		}
		b.abandon(true)
		if run, err := b.upkeep().Ask(b.Context(), b.job(id)); err != nil || run.State != engine.Running {
			b.Errorf("the run is %+v, %v", run, err)
		}
		b.engine.end(engine.Completed)
		b.wait(2 * time.Minute)
		if _, err := b.upkeep().Once(b.Context(), true); err != nil {
			b.Fatal(err)
		}
		if run, err := b.upkeep().Ask(b.Context(), b.job(id)); err != nil || run.State != engine.Completed {
			b.Errorf("of a job that is finished: %+v, %v", run, err)
		}
		_, err := upkeep.New(b.store, upkeep.Options{Logger: quiet}).Ask(b.Context(), b.job(id))
		if _, isUnknown := errors.AsType[*engine.UnknownError](err); !isUnknown {
			b.Errorf("without its engine: %v", err)
		}
	})
}

func TestRunsThatAnEngineForgetsTooSoonCannotBeFollowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		interval, retention time.Duration
		safe                bool
	}{
		"an engine that keeps them for ever":     {24 * time.Hour, 0, true},
		"an engine that keeps them for a day":    {2 * time.Second, 24 * time.Hour, true},
		"an engine that keeps them for a minute": {2 * time.Second, time.Minute, false},
		"an interval of hours, and a day":        {3 * time.Hour, 24 * time.Hour, false},
		"an interval of an hour, and three days": {time.Hour, 72 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := sluice.DefaultSettings()
			settings.FollowInterval = c.interval
			err := engine.CheckFollowing(settings, engine.Report{Retention: c.retention})
			if c.safe != (err == nil) || !c.safe && !errors.Is(err, sluice.ErrInvalid) {
				t.Errorf("checked with the error %v, want it safe: %t", err, c.safe)
			}
		})
	}
}
