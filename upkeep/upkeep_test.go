package upkeep_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
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
		store := memory.New(memory.Options{})
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

// run lets upkeep run, and gives what ends it.
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
		time.Sleep(130 * time.Second) // looks at 0, 60 and 120 s; leases end at 60 s
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

// contested is a store that lets one of many lead, and can be cut off.
type contested struct {
	sluice.Store
	leader  atomic.Pointer[lease]
	cut     atomic.Bool
	recover atomic.Int32
}

type lease struct {
	store *contested
	gone  atomic.Bool
}

func (c *contested) Lead(context.Context, string) (sluice.Leadership, bool, error) {
	mine := &lease{store: c}
	return mine, c.leader.CompareAndSwap(nil, mine), nil
}

func (l *lease) Held(context.Context) bool { return !l.gone.Load() }
func (l *lease) Release()                  { l.store.leader.CompareAndSwap(l, nil) }

func (c *contested) Recover(ctx context.Context, queue string, limit int, by string) (sluice.Recovered, error) {
	c.recover.Add(1)
	if c.cut.Load() {
		return sluice.Recovered{}, errors.New("connection refused")
	}
	return c.Store.Recover(ctx, queue, limit, by)
}

func TestOneOfManyWorksAndAnotherTakesOver(t *testing.T) {
	inFarm(t, func(f *farm) {
		f.add(sluice.EnqueueOptions{})
		store := &contested{Store: f.store}
		stops := []func(){f.run(store), f.run(store), f.run(store)}
		time.Sleep(50*time.Second + time.Millisecond)
		synctest.Wait()
		if looks := store.recover.Load(); looks < 10 || looks > 11 {
			t.Errorf("%d looks in 50 s with an interval of 5 s: more than one works, or none", looks)
		}
		store.leader.Load().gone.Store(true) // its session is lost
		time.Sleep(50 * time.Second)
		synctest.Wait()
		if looks := store.recover.Load(); looks < 20 || looks > 22 {
			t.Errorf("%d looks after 100 s", looks)
		}
		for _, stop := range stops {
			stop()
		}
	})
}

func TestUpkeepGoesOnAfterTheStoreWasAway(t *testing.T) {
	inFarm(t, func(f *farm) {
		id := f.add(sluice.EnqueueOptions{})
		f.claim()
		store := &contested{Store: f.store}
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
