package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/stat"
)

// enqueue stores a job of a tenant, which is the one to explain from now on.
func (e *explained) enqueue(tenant string) {
	e.Helper()
	receipt, err := e.client.Enqueue(e.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{Tenant: tenant}})
	if err != nil {
		e.Fatal(err)
	}
	e.id = receipt.ID
}

// ran counts a job of a tenant that completed after a while, and returns how long half of such jobs ran at most.
func (e *explained) ran(tenant string, took time.Duration) time.Duration {
	e.Helper()
	one := stat.Stat{Queue: "q", Tenant: tenant, At: time.Now().Add(-stat.Fine).Truncate(stat.Fine), Every: stat.Fine, Counts: stat.Counts{Completed: 1}}
	one.Run.Add(took)
	if err := stat.Given(e.store).AddStats(e.Context(), "test of "+tenant, []stat.Stat{one}); err != nil {
		e.Fatal(err)
	}
	return one.Run.Quantile(0.5)
}

// starts checks when the job starts by an estimate that says something. Negative: that is not known.
func (e *explained) starts(in time.Duration, says string, closed ...string) {
	e.Helper()
	why := e.closed(closed...)
	switch {
	case in < 0 && (!why.Start.IsZero() || why.Estimate != ""):
		e.Errorf("it starts at %s (%q), which nobody knows", why.Start, why.Estimate)
	case in >= 0 && (why.Start.Sub(why.Now) != in || !strings.Contains(why.Estimate, says)):
		e.Errorf("it starts in %s (%q), want %s and %q", why.Start.Sub(why.Now), why.Estimate, in, says)
	}
}

const unknown = time.Duration(-1)

func TestWhyEstimatesTheStartBehindATenantsConcurrency(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{Tenant: "acme"}, func(e *explained) {
		e.settings(func(s *sluice.Settings) { s.TenantConcurrency = 2 })
		for range 4 {
			e.enqueue("acme")
		}
		e.claim()
		e.claim()
		// 2 run and 2 come before it: the two that run and one of the others must end first.
		e.starts(unknown, "", "concurrency", "order")
		half := e.ran("", 20*time.Second)
		e.starts(3*half/2, `3 jobs must end first, at most 2 run at once, and half of the jobs of queue "q" that completed in the last hour ran at most `, "concurrency", "order")
		half = e.ran("acme", 5*time.Minute)
		e.starts(3*half/2, `of the jobs of tenant "acme"`, "concurrency", "order")
		time.Sleep(2 * time.Hour) // what ran then is no measure any more
		e.starts(unknown, "", "concurrency", "order", "workers")
	})
}

func TestWhyEstimatesTheStartBehindTheConcurrencyOfAQueue(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{}, func(e *explained) {
		e.settings(func(s *sluice.Settings) { s.Concurrency = 2 })
		half := e.ran("", 20*time.Second)
		first := e.id
		e.enqueue("")
		e.starts(0, "leave room for it", "order")
		second := e.id
		e.id = first
		e.closed()
		e.claim()
		e.claim()
		e.id = second
		e.enqueue("")
		e.starts(half/2, "1 job must end first", "in_flight")
		e.settings(func(s *sluice.Settings) { s.Paused = true })
		e.starts(unknown, "", "paused", "in_flight")
	})
}

func TestWhyKnowsNoStartIfOtherTenantsShareTheConcurrency(t *testing.T) {
	inQueue(t, sluice.EnqueueOptions{Tenant: "acme"}, func(e *explained) {
		e.settings(func(s *sluice.Settings) { s.Fair, s.Concurrency = true, 1 })
		e.ran("", 20*time.Second)
		e.claim()
		e.enqueue("acme")
		e.starts(unknown, "", "in_flight")
	})
}
