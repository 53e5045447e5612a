package upkeep_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
)

var quiet = slog.New(slog.DiscardHandler)

// farm is a store in memory in a bubble of fake time.
type farm struct {
	*testing.T
	store  sluice.Store
	client *sluice.Client
}

func inFarm(t *testing.T, test func(f *farm)) {
	t.Parallel()
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{NoStatistics: true})
		test(&farm{t, store, sluice.NewClient(store, sluice.ClientOptions{})})
	})
}

func (f *farm) add(options sluice.EnqueueOptions) sluice.ID {
	f.Helper()
	receipt, err := f.client.Enqueue(f.Context(), sluice.NewJob{Queue: "payments", Payload: []byte(`{}`), EnqueueOptions: options})
	if err != nil {
		f.Fatal(err)
	}
	return receipt.ID
}

// claim takes a job and forgets it, as a worker does that is killed.
func (f *farm) claim() *sluice.Claim {
	f.Helper()
	claimed, err := f.store.Claim(f.Context(), sluice.ClaimRequest{Queue: "payments", Limit: 1, Holder: "gone:1:x", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 1 {
		f.Fatalf("claimed %d jobs, %v", len(claimed.Jobs), err)
	}
	return claimed.Jobs[0]
}

func (f *farm) job(id sluice.ID) sluice.Job {
	f.Helper()
	job, err := f.client.Job(f.Context(), id)
	if err != nil {
		f.Fatal(err)
	}
	return job
}

// run runs upkeep until the test calls stop.
func (f *farm) run(store sluice.Store) (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	go func() { ended <- upkeep.New(store, upkeep.Options{Logger: quiet}).Run(ctx) }()
	return func() {
		f.Helper()
		cancel()
		if err := <-ended; err != nil {
			f.Errorf("Run returned %v", err)
		}
	}
}

func TestLostJobIsRecoveredWithinItsQueuesInterval(t *testing.T) {
	inFarm(t, func(f *farm) {
		id := f.add(sluice.EnqueueOptions{})
		f.claim()
		stop := f.run(f.store)
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if job := f.job(id); job.State != sluice.StateClaimed {
			t.Errorf("state %s before the lease ran out", job.State)
		}
		time.Sleep(7 * time.Second)
		synctest.Wait()
		if job := f.job(id); job.State != sluice.StateQueued || job.Recoveries != 1 || job.Attempts != 0 {
			t.Errorf("state %s, recoveries %d, attempts %d", job.State, job.Recoveries, job.Attempts)
		}
		stop()
	})
}

// TestOnceDoesAllHoweverManyThereAre leaves more lost and expired jobs than a round recovers and cancels.
func TestOnceDoesAllHoweverManyThereAre(t *testing.T) {
	inFarm(t, func(f *farm) {
		for range 5 {
			f.add(sluice.EnqueueOptions{})
			f.claim()
		}
		for range 7 {
			f.add(sluice.EnqueueOptions{DueAt: time.Now().Add(time.Hour), ExpiresAt: time.Now().Add(2 * time.Hour)})
		}
		_, err := f.client.ChangeSettings(t.Context(), "payments", sluice.Act{By: "ada"}, func(s *sluice.Settings) error {
			s.RecoverBatch = 2
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Hour)
		done, err := upkeep.New(f.store, upkeep.Options{Logger: quiet, ExpireBatch: 3}).Once(t.Context(), true)
		if err != nil || done.Recovered != 5 || done.Expired != 7 {
			t.Errorf("recovered %d of 5, cancelled %d of 7, %v", done.Recovered, done.Expired, err)
		}
	})
}

func TestRecoverIntervalAndBatchAreLive(t *testing.T) {
	inFarm(t, func(f *farm) {
		for range 5 {
			f.add(sluice.EnqueueOptions{})
			f.claim()
		}
		_, err := f.client.ChangeSettings(t.Context(), "payments", sluice.Act{By: "ada"}, func(s *sluice.Settings) error {
			s.RecoverInterval, s.RecoverBatch = time.Minute, 2
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		stop := f.run(f.store)
		time.Sleep(130 * time.Second) // upkeep runs at 0, 60 and 120 s, and the leases end at 60 s
		synctest.Wait()
		depth, err := f.client.Depth(t.Context(), "payments")
		if err != nil || depth.Ready != 2 || depth.Claimed != 3 {
			t.Errorf("depth %+v, %v", depth, err)
		}
		stop()
	})
}

func TestExpiredMendedAndPruned(t *testing.T) {
	inFarm(t, func(f *farm) {
		expires := f.add(sluice.EnqueueOptions{ExpiresAt: time.Now().Add(10 * time.Minute), Delay: time.Minute})
		orphan := sluice.Insert{NewJob: sluice.NewJob{Queue: "orphaned", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{ID: sluice.NewID(), Priority: 5}}}
		if _, err := f.store.Enqueue(t.Context(), []sluice.Insert{orphan}); err != nil {
			t.Fatal(err)
		}
		_, err := f.client.ChangeSettings(t.Context(), "payments", sluice.Act{By: "ada"}, func(s *sluice.Settings) error {
			s.Paused, s.KeepCancelled = true, time.Hour
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		stop := f.run(f.store)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if job := f.job(expires); job.State != sluice.StateCancelled {
			t.Errorf("state %s after its expiry", job.State)
		}
		if _, err := f.client.Queue(t.Context(), "orphaned"); err != nil {
			t.Errorf("the orphaned queue has no settings: %v", err)
		}
		time.Sleep(80 * time.Minute)
		synctest.Wait()
		if _, err := f.client.Job(t.Context(), expires); !errors.Is(err, sluice.ErrNotFound) {
			t.Errorf("after its time: %v", err)
		}
		stop()
	})
}

func TestOnceDoesEverythingAtOnceAndCountsIt(t *testing.T) {
	inFarm(t, func(f *farm) {
		f.add(sluice.EnqueueOptions{})
		f.claim()
		f.add(sluice.EnqueueOptions{ExpiresAt: time.Now().Add(time.Second)})
		old := f.add(sluice.EnqueueOptions{})
		if err := f.client.Cancel(t.Context(), []sluice.ID{old}, sluice.Act{By: "ada"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * 24 * time.Hour)
		done, err := upkeep.New(f.store, upkeep.Options{Logger: quiet}).Once(t.Context(), true)
		if err != nil || done != (upkeep.Done{Recovered: 1, Expired: 1, Pruned: 1}) {
			t.Errorf("done %+v, %v", done, err)
		}
	})
}

// processes has a name of its own, because two embedded ports are named Store.
type processes = presence.Store

func newSeat(store sluice.Store) *seat { return &seat{Store: store, processes: presence.Given(store)} }

// seat is one process's connection to a shared store. Tests can cut it off, and it counts the jobs that were recovered
// through it.
type seat struct {
	sluice.Store
	processes
	cut     atomic.Bool
	recover atomic.Int32
	leads   atomic.Pointer[[]string]
}

// Unwrap returns the decorated store.
func (s *seat) Unwrap() sluice.Store { return s.Store }

var errCut = errors.New("connection refused")

func (s *seat) Elect(ctx context.Context, holder string, tasks []string, lease time.Duration) ([]string, error) {
	if s.cut.Load() {
		return nil, errCut
	}
	leads, err := s.processes.Elect(ctx, holder, tasks, lease)
	s.leads.Store(&leads)
	return leads, err
}

func (s *seat) Recover(ctx context.Context, queue string, limit int, by string) (sluice.Recovered, error) {
	if s.cut.Load() {
		return sluice.Recovered{}, errCut
	}
	s.recover.Add(1)
	return s.Store.Recover(ctx, queue, limit, by)
}

func (s *seat) leadsUpkeep() bool {
	leads := s.leads.Load()
	return leads != nil && slices.Contains(*leads, presence.TaskUpkeep)
}

func TestOneOfManyWorksAndAnotherTakesOverWithinTheLease(t *testing.T) {
	inFarm(t, func(f *farm) {
		f.add(sluice.EnqueueOptions{})
		seats := []*seat{newSeat(f.store), newSeat(f.store), newSeat(f.store)}
		for _, s := range seats {
			defer f.run(s)()
		}
		looks := func() (all int32) {
			for _, s := range seats {
				all += s.recover.Load()
			}
			return all
		}
		time.Sleep(50*time.Second + time.Millisecond)
		synctest.Wait()
		if n := looks(); n < 10 || n > 11 {
			t.Errorf("%d looks in 50 s with an interval of 5 s: more than one works, or none", n)
		}
		first := slices.IndexFunc(seats, (*seat).leadsUpkeep)
		seats[first].cut.Store(true)
		seats[first].leads.Store(nil)
		time.Sleep(12 * time.Second) // the lease is 10 s
		synctest.Wait()
		if !slices.ContainsFunc(seats, (*seat).leadsUpkeep) {
			t.Error("nobody has taken over when the lease has passed")
		}
		time.Sleep(38 * time.Second)
		synctest.Wait()
		if n := looks(); n < 18 || n > 21 {
			t.Errorf("%d looks after 100 s", n)
		}
	})
}

func TestUpkeepThatEndsLetsAnotherLeadAtOnce(t *testing.T) {
	inFarm(t, func(f *farm) {
		first, second := newSeat(f.store), newSeat(f.store)
		stop := f.run(first)
		time.Sleep(time.Millisecond)
		defer f.run(second)()
		time.Sleep(time.Second)
		synctest.Wait()
		if !first.leadsUpkeep() || second.leadsUpkeep() {
			t.Fatalf("the first leads: %t, the second: %t, want only the first", first.leadsUpkeep(), second.leadsUpkeep())
		}
		stop()
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if !second.leadsUpkeep() {
			t.Error("nobody leads 1 s after the first has left, want the second")
		}
	})
}

func TestUpkeepGoesOnAfterTheStoreWasAway(t *testing.T) {
	inFarm(t, func(f *farm) {
		id := f.add(sluice.EnqueueOptions{})
		f.claim()
		store := newSeat(f.store)
		store.cut.Store(true)
		stop := f.run(store)
		time.Sleep(5 * time.Minute)
		store.cut.Store(false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if job := f.job(id); job.State != sluice.StateQueued {
			t.Errorf("state %s", job.State)
		}
		stop()
	})
}
