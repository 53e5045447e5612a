package sqlite_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// step sets the wall clock until the test ends. Tests that call it are not parallel, because the clock is that of all
// tests.
func step(t *testing.T, d time.Duration) {
	t.Helper()
	sqlite.StepClock(d)
	t.Cleanup(func() { sqlite.StepClock(-d) })
}

func claimFor(t *testing.T, store *sqlite.Store, lease time.Duration) *sluice.Claim {
	t.Helper()
	claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h:1:x", Lease: lease, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 1 {
		t.Fatalf("claimed %d, %v", len(claimed.Jobs), err)
	}
	return claimed.Jobs[0]
}

func recovered(t *testing.T, store *sqlite.Store) int {
	t.Helper()
	out, err := store.Recover(t.Context(), "q", 100, "upkeep")
	if err != nil {
		t.Fatal(err)
	}
	return out.Requeued + out.Buried
}

func TestLeasesOutliveAStepOfTheClock(t *testing.T) {
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			store := openStore(t, path)
			client := sluice.NewClient(store, sluice.ClientOptions{})
			for range 3 {
				enqueueOne(t, client)
			}
			before, short := claimFor(t, store, time.Minute), claimFor(t, store, 200*time.Millisecond)
			step(t, by)
			later := openStore(t, path) // a process that starts after the step has seen no other clock
			for name, s := range map[string]*sqlite.Store{"a process of before": store, "a process of after": later} {
				job, err := s.Job(t.Context(), before.ID)
				if left := time.Until(job.LeaseUntil.Add(-by)); err != nil || left > time.Minute || left < 0 {
					t.Errorf("%s tells that the lease goes on for %s, %v", name, left, err)
				}
			}
			if due, err := engine.Given(store).Dispatches(t.Context(), engine.DispatchFilter{Queue: "q", Overdue: true}); err != nil || len(due) > 0 {
				t.Errorf("overdue: %v, %v", due, err)
			}
			// The dead holder's job is recovered when its own lease ends, neither earlier nor 1 h later.
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				if n := recovered(t, later) + recovered(t, store); n > 1 {
					t.Fatalf("%d jobs were recovered; only one lease has run out", n)
				} else if n == 1 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the job of the holder that died is not recovered")
				}
			}
			if state := stateOf(t, client, short.ID); state != sluice.StateQueued {
				t.Errorf("the job of the holder that died is %s", state)
			}
			if lost, err := later.Renew(t.Context(), []sluice.Renewal{{ID: before.ID, Token: before.Token, Lease: time.Minute, Queue: "q"}}); err != nil || len(lost) > 0 {
				t.Errorf("renew: lost %v, %v", lost, err)
			}
		})
	}
}

// TestNoHandlerIsStartedTwiceByAStepOfTheClock runs jobs for longer than the interval of upkeep.
func TestNoHandlerIsStartedTwiceByAStepOfTheClock(t *testing.T) {
	store, client := newStore(t)
	const jobs = 50
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var starts atomic.Int64
	running, release := make(chan struct{}, 2*jobs), make(chan struct{})
	w := worker.New(store, worker.Options{Slots: jobs, Logger: slog.New(slog.DiscardHandler)})
	worker.Handle(w, sluice.QueueOf[struct{}]("q"), func(context.Context, *worker.Job[struct{}]) error {
		starts.Add(1)
		running <- struct{}{}
		<-release
		return nil
	}, worker.QueueOptions{})
	for range jobs {
		enqueueOne(t, client)
	}
	var both sync.WaitGroup
	both.Go(func() { _ = w.Run(ctx) })
	for range jobs {
		<-running
	}
	for _, by := range []time.Duration{time.Hour, -2 * time.Hour, 25 * time.Hour} {
		step(t, by)
		if _, err := upkeep.New(store, upkeep.Options{Logger: slog.New(slog.DiscardHandler)}).Once(ctx, true); err != nil {
			t.Fatal(err)
		}
		if n := recovered(t, store); n > 0 {
			t.Errorf("a step of %s: %d jobs were recovered from handlers that run", by, n)
		}
	}
	close(release)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if depth, err := client.Depth(t.Context(), "q"); err == nil && depth.Ready+depth.Claimed == 0 {
			break
		}
	}
	stop()
	both.Wait()
	if n := starts.Load(); n != jobs {
		t.Errorf("%d starts of %d jobs", n, jobs)
	}
}

func TestLeasesOfAnEarlierStartOfTheMachineEndSoonAlthoughItsClockWasAhead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	step(t, 10*time.Hour)
	ahead := openStore(t, path)
	client := sluice.NewClient(ahead, sluice.ClientOptions{})
	if _, err := client.EnsureQueue(t.Context(), "q", sluice.DefaultSettings(), sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	_, err := client.ChangeSettings(t.Context(), "q", sluice.Act{By: "test"}, func(s *sluice.Settings) error {
		s.Lease = 100 * time.Millisecond
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	enqueueOne(t, client)
	claimFor(t, ahead, time.Minute)
	if err := ahead.StartMachine(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := ahead.Close(); err != nil {
		t.Fatal(err)
	}
	sqlite.StepClock(-10 * time.Hour)
	defer sqlite.StepClock(10 * time.Hour)
	store := openStore(t, path)
	for deadline := time.Now().Add(30 * time.Second); recovered(t, store) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the job is not recovered")
		}
	}
}

// TestRateIsKeptThroughStepsOfTheClock sets the clock forward and back. The rate's window uses the steady clock,
// whatever tokens the step adds.
func TestRateIsKeptThroughStepsOfTheClock(t *testing.T) {
	for _, by := range []time.Duration{20 * time.Hour, -20 * time.Hour} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jobs.db")
			before := openStore(t, path)
			client := sluice.NewClient(before, sluice.ClientOptions{})
			settings := sluice.DefaultSettings()
			settings.Rate, settings.Burst = sluice.Rate{Jobs: 1, Per: time.Hour}, 9
			if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
				t.Fatal(err)
			}
			for range 50 {
				enqueueOne(t, client)
			}
			started := 0
			claim := func(store *sqlite.Store) {
				t.Helper()
				out, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 20, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
				if err != nil {
					t.Fatal(err)
				}
				if started += len(out.Jobs); started > 10 {
					t.Errorf("%d start in an hour, and 10 may", started)
				}
			}
			claim(before)
			step(t, by)
			after := openStore(t, path) // as a process that starts after the step
			claim(before)
			claim(after)
		})
	}
}

// TestAllProcessesOfAMachineReadTheSameClock opens a file many times. If one clock were behind another, the window
// would forget a start too early.
func TestAllProcessesOfAMachineReadTheSameClock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	var stores []*sqlite.Store
	for range 6 {
		stores = append(stores, openStore(t, path))
	}
	for i, a := range stores {
		for j, b := range stores {
			if before, then := a.SteadyClock(), b.SteadyClock(); then < before {
				t.Errorf("the clock of store %d is %d µs behind that of store %d", j, before-then, i)
			}
		}
	}
}

// TestHundredsOfStepsOfTheClockCostNoAttempt sets the clock back and forth while handlers renew their leases. Upkeep
// runs after each step.
func TestHundredsOfStepsOfTheClockCostNoAttempt(t *testing.T) {
	store, client := newStore(t)
	settings := sluice.DefaultSettings()
	settings.Lease, settings.MaxAttempts, settings.MaxRecoveries = time.Second, 1, 1
	if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	const jobs = 20
	for range jobs {
		enqueueOne(t, client)
	}
	ctx, stop := context.WithCancel(t.Context())
	running, release := make(chan struct{}, 2*jobs), make(chan struct{})
	w := worker.New(store, worker.Options{Slots: jobs, Logger: slog.New(slog.DiscardHandler)})
	worker.Handle(w, sluice.QueueOf[struct{}]("q"), func(context.Context, *worker.Job[struct{}]) error {
		running <- struct{}{}
		<-release
		return nil
	}, worker.QueueOptions{})
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for range jobs {
		<-running
	}
	for i := range 300 {
		by := time.Hour
		if i%2 == 1 {
			by = -by
		}
		sqlite.StepClock(by)
		if n := recovered(t, store); n > 0 {
			t.Fatalf("step %d: %d jobs were recovered from handlers that run", i, n)
		}
		time.Sleep(5 * time.Millisecond)
	}
	close(release)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	page, err := client.Jobs(t.Context(), sluice.JobFilter{Queue: "q"})
	if err != nil || len(page.Jobs) != jobs {
		t.Fatalf("%d jobs, %v", len(page.Jobs), err)
	}
	for _, job := range page.Jobs {
		if job.State != sluice.StateCompleted || job.Attempts+job.Recoveries > 0 {
			t.Errorf("job %s is %s after %d attempts and %d recoveries", job.ID, job.State, job.Attempts, job.Recoveries)
		}
	}
}

// TestRateGoesOnWhenTheClockWasSetBack sets the clock back right after a claim took the last token of a rate: of a queue, of
// a limit that it shares, of a limit key, and of costs. New jobs are due at once, and must not wait for the old time to come again.
func TestRateGoesOnWhenTheClockWasSetBack(t *testing.T) {
	rate := sluice.Rate{Jobs: 10, Per: time.Second}
	for name, of := range map[string]limit.Limit{
		"of the queue": {}, "of a limit": {Rate: rate}, "of a limit key": {Rate: rate, PerKey: true}, "of costs": {Rate: rate, ByCost: true},
	} {
		t.Run(name, func(t *testing.T) {
			store, client := newStore(t)
			act, settings := sluice.Act{By: "test"}, sluice.DefaultSettings()
			if of.Rate.IsZero() {
				settings.Rate = rate
			} else {
				settings.Limits = "bank"
			}
			_, err := limit.Change(t.Context(), store, "bank", act, func(l *limit.Limit) error {
				l.Rate, l.PerKey, l.ByCost = of.Rate, of.PerKey, of.ByCost
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := client.EnsureQueue(t.Context(), "q", settings, act); err != nil {
				t.Fatal(err)
			}
			claimed := func() int {
				t.Helper()
				job := sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{LimitKey: "a"}}
				if _, err := client.Enqueue(t.Context(), job); err != nil {
					t.Fatal(err)
				}
				out, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
				if err != nil {
					t.Fatal(err)
				}
				return len(out.Jobs)
			}
			if claimed() != 1 {
				t.Fatal("the first claim gets no job")
			}
			step(t, -time.Hour)
			for deadline := time.Now().Add(30 * time.Second); claimed() == 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("no claim gets a job")
				}
			}
		})
	}
}
