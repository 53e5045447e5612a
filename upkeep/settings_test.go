package upkeep_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the time zones of the tests

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
)

var ada = sluice.Act{By: "ada", Reason: "month's end"}

// inFarmOn runs a test from an instant of the store's clock on. The farm's queue has max_attempts 4.
func inFarmOn(t *testing.T, instant string, test func(f *farm)) {
	t.Parallel()
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begin, err := time.Parse(time.RFC3339, instant)
		if err != nil {
			t.Fatal(err)
		}
		skew := time.Until(begin) // the store's clock differs from the processes'
		store := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(skew).UTC() }})
		f := &farm{t, store, sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})}
		settings := sluice.DefaultSettings()
		settings.MaxAttempts = 4
		if _, err := f.client.EnsureQueue(t.Context(), "payments", settings, ada); err != nil {
			t.Fatal(err)
		}
		test(f)
	})
}

// attempts checks max_attempts, the setting that these tests change.
func (f *farm) attempts(when string, want int) {
	f.Helper()
	if q := f.queue(); q.Settings.MaxAttempts != want {
		f.Errorf("%s: max_attempts is %d, want %d; the store's clock shows %s", when, q.Settings.MaxAttempts, want, q.Now)
	}
}

func (f *farm) queue() sluice.Queue {
	f.Helper()
	q, err := f.client.Queue(f.Context(), "payments")
	if err != nil {
		f.Fatal(err)
	}
	return q
}

// set changes max_attempts, for a while or for good.
func (f *farm) set(attempts int, while time.Duration) {
	f.Helper()
	change := func(s *sluice.Settings) error { s.MaxAttempts = attempts; return nil }
	var err error
	if while > 0 {
		_, err = changes.For(f.Context(), f.client, "payments", while, ada, change)
	} else {
		_, err = f.client.ChangeSettings(f.Context(), "payments", ada, change)
	}
	if err != nil {
		f.Fatal(err)
	}
}

// plans lists the scheduled changes of a queue.
func (f *farm) plans(q sluice.Queue) []changes.Change {
	f.Helper()
	plans, err := changes.List(q)
	if err != nil {
		f.Fatal(err)
	}
	return plans
}

// schedule changes max_attempts during a window.
func (f *farm) schedule(attempts string, window changes.Window) changes.Change {
	f.Helper()
	q, err := changes.Schedule(f.Context(), f.client, "payments", window, map[string]string{"max_attempts": attempts}, ada)
	if err != nil {
		f.Fatal(err)
	}
	return f.plans(q)[len(f.plans(q))-1]
}

// runEachMinute runs upkeep once a minute instead of each second, because in these tests days pass.
func (f *farm) runEachMinute() (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	go func() { ended <- upkeep.New(f.store, upkeep.Options{Interval: time.Minute, Logger: quiet}).Run(ctx) }()
	return func() {
		f.Helper()
		cancel()
		if err := <-ended; err != nil {
			f.Errorf("Run returned %v", err)
		}
	}
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// last returns the newest audit entry of the queue.
func (f *farm) last() sluice.AuditEntry {
	f.Helper()
	entries, err := f.client.Audit(f.Context(), sluice.AuditFilter{Object: audit.ObjectQueue, Name: "payments", Limit: 1})
	if err != nil {
		f.Fatal(err)
	}
	return entries[0]
}

func TestChangeIsRevertedWhenItWasPromised(t *testing.T) {
	inFarmOn(t, "2030-01-01T00:00:00Z", func(f *farm) {
		stop, stopOther := f.run(f.store), f.run(f.store)
		f.set(9, 30*time.Minute)
		f.attempts("at once", 9)
		pass(30*time.Minute - time.Second)
		f.attempts("before", 9)
		pass(2 * time.Second)
		f.attempts("after", 4)
		if e := f.last(); e.Reason != "reverted as ada said: month's end" || !strings.Contains(e.Actor, ":") {
			f.Errorf("the audit tells %q by %s", e.Reason, e.Actor)
		}
		if q := f.queue(); q.Version != 3 || len(q.Scheduled) != 0 {
			f.Errorf("version %d and plans %v: two upkeepers made more than one change", q.Version, q.Scheduled)
		}
		stop()
		stopOther()
	})
}

func TestWhatWasChangedSinceIsNotReverted(t *testing.T) {
	inFarmOn(t, "2030-01-01T00:00:00Z", func(f *farm) {
		stop := f.runEachMinute()
		_, err := changes.For(t.Context(), f.client, "payments", time.Hour, ada, func(s *sluice.Settings) error {
			s.MaxAttempts, s.Lease = 9, 2*time.Minute
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		f.set(7, 0)
		pass(2 * time.Hour)
		f.attempts("after", 7)
		if q := f.queue(); q.Settings.Lease != time.Minute || len(q.Scheduled) != 0 {
			f.Errorf("lease %s and plans %v", q.Settings.Lease, q.Scheduled)
		}
		if e := f.last(); !strings.HasSuffix(e.Reason, "; but max_attempts was changed since, and stays") {
			f.Errorf("the audit tells %q", e.Reason)
		}
		stop()
	})
}

func TestPromisesOnTopOfEachOtherLeadBackToTheBeginning(t *testing.T) {
	for name, whiles := range map[string][2]time.Duration{"the first ends first": {time.Hour, 2 * time.Hour}, "the second ends first": {2 * time.Hour, time.Hour}} {
		t.Run(name, func(t *testing.T) {
			inFarmOn(t, "2030-01-01T00:00:00Z", func(f *farm) {
				stop := f.runEachMinute()
				f.set(5, whiles[0])
				f.set(6, whiles[1])
				pass(90 * time.Minute)
				f.attempts("when one has ended", map[bool]int{true: 6, false: 5}[whiles[0] < whiles[1]])
				pass(time.Hour)
				f.attempts("when both have ended", 4)
				stop()
			})
		})
	}
}

func TestWindowCountsEachDayOverTheChangeOfClocks(t *testing.T) {
	// In the night of the second day, the clocks of Berlin are set ahead.
	inFarmOn(t, "2026-03-28T12:00:30Z", func(f *farm) {
		stop := f.runEachMinute()
		f.schedule("9", changes.Window{From: "16:00", To: "18:00", Zone: "Europe/Berlin"})
		for _, hour := range []struct{ after, attempts int }{{3, 9}, {5, 4}, {26, 9}, {28, 4}, {50, 9}, {52, 4}} {
			until := time.Date(2026, 3, 28, 12+hour.after, 0, 0, 0, time.UTC)
			pass(until.Sub(f.queue().Now) - time.Second)
			f.attempts("before", 13-hour.attempts)
			pass(time.Minute + time.Second)
			f.attempts("after", hour.attempts)
		}
		if e := f.last(); e.Reason != "the time 16:00 to 18:00 Europe/Berlin is over, for which ada changed settings" {
			f.Errorf("the audit tells %q", e.Reason)
		}
		stop()
	})
}

func TestWindowsThatOverlapLeadBackToTheBeginning(t *testing.T) {
	inFarmOn(t, "2030-01-01T00:00:00Z", func(f *farm) {
		stop := f.runEachMinute()
		f.schedule("6", changes.Window{From: "02:00", To: "04:00", Zone: "UTC"})
		f.schedule("5", changes.Window{From: "01:00", To: "03:00", Zone: "UTC"})
		f.schedule("6", changes.Window{From: "02:30", To: "05:00", Zone: "UTC"})
		pass(30 * time.Minute)
		for day := range 3 {
			for i, want := range []int{4, 5, 6, 6, 6, 4} {
				f.attempts(time.Duration(24*day+i).String(), want)
				pass(time.Hour)
			}
			stop() // so that upkeep need not run each second all night
			pass(18 * time.Hour)
			stop = f.runEachMinute()
			synctest.Wait()
		}
		stop()
	})
}

func TestAfterAnOutageOfUpkeepWhatIsRightThenIsSetAtOnce(t *testing.T) {
	inFarmOn(t, "2030-01-01T12:00:00Z", func(f *farm) {
		f.schedule("9", changes.Window{From: "13:00", To: "14:00", Zone: "UTC"})
		f.set(8, 10*time.Minute)
		pass(90 * time.Minute)
		f.attempts("without upkeep", 8)
		stop := f.run(f.store)
		synctest.Wait()
		f.attempts("inside of the window", 9)
		stop()
		pass(time.Hour)
		f.attempts("without upkeep", 9)
		stop = f.run(f.store)
		synctest.Wait()
		f.attempts("outside of it", 4)
		stop()
	})
}

func TestWindowThatIsRemovedWhileItIsOpenPutsBackWhatItSet(t *testing.T) {
	inFarmOn(t, "2030-01-01T12:00:00Z", func(f *farm) {
		stop := f.run(f.store)
		plan := f.schedule("9", changes.Window{From: "12:00", To: "14:00", Zone: "UTC"})
		pass(2 * time.Second)
		f.attempts("inside", 9)
		if _, err := changes.Cancel(t.Context(), f.client, "payments", plan.ID, ada); err != nil {
			t.Fatal(err)
		}
		f.attempts("removed", 4)
		if _, err := changes.Undo(t.Context(), f.client, "payments", ada); err != nil {
			t.Fatal(err)
		}
		f.attempts("the removal undone", 9)
		pass(3 * time.Hour)
		f.attempts("after it", 4)
		stop()
	})
}

func TestWhatUpkeepDoesCanBeUndone(t *testing.T) {
	inFarmOn(t, "2030-01-01T12:00:00Z", func(f *farm) {
		stop := f.runEachMinute()
		f.schedule("9", changes.Window{From: "13:00", To: "14:00", Zone: "UTC"})
		undo := func(want int) {
			f.Helper()
			if _, err := changes.Undo(t.Context(), f.client, "payments", ada); err != nil {
				t.Fatal(err)
			}
			pass(2 * time.Minute)
			f.attempts("undone", want)
		}
		pass(90 * time.Minute)
		undo(4) // undoes the window's opening; the window does not open again today
		undo(9) // undoes the undo
		pass(time.Hour)
		f.attempts("the window is over", 4)
		pass(23 * time.Hour)
		f.attempts("on the next day", 9)
		f.set(3, time.Hour)
		undo(9) // the undo removes the scheduled end of the change, too
		if plans := f.plans(f.queue()); len(plans) != 1 {
			f.Errorf("plans %v, want the window alone", plans)
		}
		stop()
	})
}

func TestWindowThatWouldBreakARuleSetsNothing(t *testing.T) {
	inFarmOn(t, "2030-01-01T12:00:00Z", func(f *farm) {
		window := changes.Window{From: "13:00", To: "14:00", Zone: "UTC"}
		set := map[string]string{"backoff_max": "10s", "max_attempts": "9"}
		if _, err := changes.Schedule(t.Context(), f.client, "payments", window, set, ada); err != nil {
			t.Fatal(err)
		}
		_, err := f.client.ChangeSettings(t.Context(), "payments", ada, func(s *sluice.Settings) error { s.Backoff.Base = 20 * time.Second; return nil })
		if err != nil {
			t.Fatal(err)
		}
		stop := f.runEachMinute()
		pass(90 * time.Minute)
		f.attempts("inside", 4)
		if e := f.last(); !strings.Contains(e.Reason, "; but nothing is set: invalid backoff_max: 10s is shorter than backoff_base, 20s") {
			f.Errorf("the audit tells %q", e.Reason)
		}
		version := f.queue().Version
		pass(10 * time.Minute)
		if now := f.queue().Version; now != version {
			f.Errorf("version %d became %d", version, now)
		}
		stop()
	})
}

// behindBack is a store in which plain SQL has changed max_attempts.
type behindBack struct {
	sluice.Store
	attempts atomic.Int64
}

// Unwrap returns the decorated store.
func (b *behindBack) Unwrap() sluice.Store { return b.Store }

func (b *behindBack) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	queues, err := b.Store.Queues(ctx, filter)
	if n := b.attempts.Load(); n > 0 {
		queues[0].Settings.MaxAttempts = int(n)
	}
	return queues, err
}

func TestPlainSQLIsToldWithinASecondAndCanBeUndone(t *testing.T) {
	inFarmOn(t, "2030-01-01T12:00:00Z", func(f *farm) {
		behind := &behindBack{Store: f.store}
		stop := f.run(behind)
		pass(5 * time.Second)
		behind.attempts.Store(7)
		pass(time.Second)
		behind.attempts.Store(0) // from now on, the store shows its own value again
		if e := f.last(); e.Actor != "sql" || e.Reason != "changed by plain SQL" {
			f.Errorf("the audit tells %q by %s", e.Reason, e.Actor)
		}
		f.attempts("changed", 7)
		if _, err := changes.Undo(t.Context(), f.client, "payments", ada); err != nil {
			t.Fatal(err)
		}
		f.attempts("undone", 4)
		stop()
	})
}

func TestOnceTellsHowManySettingsItChanged(t *testing.T) {
	inFarmOn(t, "2030-01-01T12:00:00Z", func(f *farm) {
		f.schedule("9", changes.Window{From: "12:00", To: "14:00", Zone: "UTC"})
		for _, want := range []int{1, 0} {
			done, err := upkeep.New(f.store, upkeep.Options{Logger: quiet}).Once(t.Context(), true)
			if err != nil || done.Settings != want {
				f.Errorf("%d changes, %v; want %d", done.Settings, err, want)
			}
		}
	})
}
