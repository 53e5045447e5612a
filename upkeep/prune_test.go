package upkeep_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
)

// slowPrune is a store whose deletions take a while. It records how long they took in all, and how often upkeep looked
// for expired leases meanwhile.
type slowPrune struct {
	sluice.Store
	takes time.Duration

	mu      sync.Mutex
	calls   int
	deleted int
	looks   int
}

// Unwrap returns the decorated store.
func (s *slowPrune) Unwrap() sluice.Store { return s.Store }

func (s *slowPrune) Prune(ctx context.Context, after string, limit int) (sluice.Pruned, error) {
	time.Sleep(s.takes)
	out, err := s.Store.Prune(ctx, after, min(limit, 10))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.deleted += out.Deleted
	return out, err
}

func (s *slowPrune) Recover(ctx context.Context, queue string, limit int, by string) (sluice.Recovered, error) {
	s.mu.Lock()
	s.looks++
	s.mu.Unlock()
	return s.Store.Recover(ctx, queue, limit, by)
}

func (s *slowPrune) counts() (calls, deleted, looks int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls, s.deleted, s.looks
}

func (f *farm) addOld(n int) {
	f.Helper()
	ids := make([]sluice.ID, n)
	for i := range ids {
		ids[i] = f.add(sluice.EnqueueOptions{})
	}
	if err := f.client.Cancel(f.Context(), ids, sluice.Act{By: "ada"}); err != nil {
		f.Fatal(err)
	}
	time.Sleep(30 * 24 * time.Hour)
}

func TestPruningGoesOnWhileThereIsMoreForHalfOfTheTime(t *testing.T) {
	inFarm(t, func(f *farm) {
		f.addOld(1000)
		store := &slowPrune{Store: f.store, takes: 10 * time.Millisecond}
		stop := f.run(store)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		calls, _, _ := store.counts()
		if calls < 45 || calls > 80 {
			t.Errorf("%d deletions of 10 ms in 1.5 s, want half of what would fit", calls)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		calls, deleted, _ := store.counts()
		if deleted != 1000 {
			t.Errorf("%d of 1000 are gone after %d deletions", deleted, calls)
		}
		time.Sleep(50 * time.Second)
		synctest.Wait()
		if now, _, _ := store.counts(); now != calls {
			t.Errorf("%d looks within a minute after the pass was over", now-calls)
		}
		stop()
	})
}

func TestRecoveryDoesNotWaitForPruning(t *testing.T) {
	inFarm(t, func(f *farm) {
		f.addOld(100)
		store := &slowPrune{Store: f.store, takes: time.Minute}
		stop := f.run(store)
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if calls, _, looks := store.counts(); calls != 0 || looks < 10 {
			t.Errorf("leases were looked at %d times while the first of %d deletions went on, want each 5 s", looks, calls+1)
		}
		stop()
	})
}
