package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/tenancy"
	"github.com/sluice-queue/sluice/worker"
)

// refused runs a handler whose first call returns a rate limit of 10 min. It returns when each call began.
func refused(s *shop, queue func(*sluice.Settings), jobs ...sluice.EnqueueOptions) (starts []time.Time) {
	s.Helper()
	s.settings(func(set *sluice.Settings) { set.Ageing = 0; queue(set) }) // the jobs begin in the order of their priorities
	ids := make([]sluice.ID, len(jobs))
	for i, options := range jobs {
		ids[i] = s.add(options)
	}
	var done atomic.Int32
	s.run(worker.Options{Slots: 1}, func(context.Context, *worker.Job[payment]) error {
		if starts = append(starts, time.Now()); len(starts) == 1 {
			return worker.RateLimited(10 * time.Minute)
		}
		done.Add(1)
		return nil
	})
	for _, id := range ids {
		if job := s.becomes(id, sluice.StateCompleted); job.Attempts != 0 {
			s.Errorf("job %d counts %d failed attempts, want none", job.Priority, job.Attempts)
		}
	}
	_ = s.end()
	return starts
}

func TestRateLimitedClosesTheLimitsOfTheQueueForEverybody(t *testing.T) {
	inShop(t, func(s *shop) {
		saveLimit(s, "bank", limit.Limit{})
		starts := refused(s, func(set *sluice.Settings) { set.Limits = "bank,unknown" }, sluice.EnqueueOptions{Priority: 1}, sluice.EnqueueOptions{Priority: 2})
		if waited := starts[1].Sub(starts[0]); waited < 10*time.Minute || waited > 11*time.Minute {
			t.Errorf("the other job began after %s, want 10m", waited)
		}
		bank, err := limit.Read(t.Context(), s.store, "bank")
		if err != nil || bank.ClosedUntil.Sub(starts[0]).Round(time.Second) != 10*time.Minute {
			t.Errorf("the limit is closed until %s, 10m after %s: %v", bank.ClosedUntil, starts[0], err)
		}
	})
}

func TestRateLimitedPausesTheTenantOfAQueueWithoutLimits(t *testing.T) {
	inShop(t, func(s *shop) {
		starts := refused(s, func(*sluice.Settings) {}, sluice.EnqueueOptions{Tenant: "acme", Priority: 1},
			sluice.EnqueueOptions{Tenant: "acme", Priority: 2}, sluice.EnqueueOptions{Tenant: "globex", Priority: 3})
		if waited := starts[1].Sub(starts[0]); waited > time.Minute {
			t.Errorf("the job of another tenant began after %s, want at once", waited)
		}
		if waited := starts[2].Sub(starts[0]); waited < 10*time.Minute {
			t.Errorf("the job of the same tenant began after %s, want 10m", waited)
		}
		found, err := tenancy.LimitsOf(t.Context(), s.store, "", "acme")
		if err != nil || len(found) != 1 || !found[0].Paused {
			t.Errorf("limits of acme: %v %v, want a pause", found, err)
		}
	})
}

func TestRateLimitedWithoutLimitsAndTenantsHoldsBackItsJobAlone(t *testing.T) {
	inShop(t, func(s *shop) {
		starts := refused(s, func(*sluice.Settings) {}, sluice.EnqueueOptions{Priority: 1}, sluice.EnqueueOptions{Priority: 2})
		if waited := starts[1].Sub(starts[0]); waited > time.Minute {
			t.Errorf("the other job began after %s, want at once", waited)
		}
		if waited := starts[2].Sub(starts[0]); waited < 10*time.Minute {
			t.Errorf("the job began again after %s, want 10m", waited)
		}
	})
}

func TestRateLimitedLeavesALongerCloseAsItIs(t *testing.T) {
	inShop(t, func(s *shop) {
		saveLimit(s, "bank", limit.Limit{})
		s.settings(func(set *sluice.Settings) { set.Limits = "bank" })
		s.run(worker.Options{}, func(context.Context, *worker.Job[payment]) error {
			saveLimit(s, "bank", limit.Limit{Closed: true})
			return worker.RateLimited(time.Minute)
		})
		id := s.add(sluice.EnqueueOptions{})
		time.Sleep(time.Hour)
		if job := s.job(id); job.State != sluice.StateQueued || job.Releases != 1 {
			t.Errorf("the job is %s after %d releases, want queued after 1", job.State, job.Releases)
		}
		_ = s.end()
	})
}

// saveLimit stores a limit.
func saveLimit(s *shop, name string, of limit.Limit) {
	s.Helper()
	_, err := limit.Change(s.Context(), s.store, name, sluice.Act{By: "ada", Reason: "test"}, func(l *limit.Limit) error {
		l.Closed, l.ClosedUntil = of.Closed, of.ClosedUntil
		return nil
	})
	if err != nil {
		s.Error(err)
	}
}

func TestRateLimitedClosesOnlyTheLimitKeyOfTheJob(t *testing.T) {
	inShop(t, func(s *shop) {
		for _, l := range []limit.Limit{{Name: "bank"}, {Name: "host", PerKey: true}} {
			_, err := limit.Change(t.Context(), s.store, l.Name, sluice.Act{By: "ada", Reason: "test"}, func(of *limit.Limit) error {
				of.PerKey = l.PerKey
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		starts := refused(s, func(set *sluice.Settings) { set.Limits = "bank,host" }, sluice.EnqueueOptions{LimitKey: "a", Priority: 1},
			sluice.EnqueueOptions{LimitKey: "a", Priority: 2}, sluice.EnqueueOptions{LimitKey: "b", Priority: 3})
		if waited := starts[1].Sub(starts[0]); waited > time.Minute {
			t.Errorf("the job of another key began after %s, want at once", waited)
		}
		if waited := starts[2].Sub(starts[0]); waited < 10*time.Minute || waited > 12*time.Minute {
			t.Errorf("the job of the same key began after %s, want 10m", waited)
		}
	})
}
