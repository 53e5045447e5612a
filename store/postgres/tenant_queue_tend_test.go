package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/tenancy"
)

// count returns the number of rows of a table that meet a condition.
func count(t *testing.T, store *postgres.Store, of string) (n int) {
	t.Helper()
	if err := store.Pool().QueryRow(t.Context(), "select count(*) from sluice."+of).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// prune runs upkeep's Prune for limit rows.
func prune(t *testing.T, store *postgres.Store, limit int) {
	t.Helper()
	if _, err := store.Prune(t.Context(), "", limit); err != nil {
		t.Fatal(err)
	}
}

func repair(t *testing.T, store *postgres.Store) {
	t.Helper()
	if _, err := store.Repair(t.Context(), "upkeep"); err != nil {
		t.Fatal(err)
	}
}

// fresh claims from the front. A claim from a mark would leave empty tenant queues to later claims.
func fresh(t *testing.T, store *postgres.Store, limit int) map[string]int {
	t.Helper()
	store.ForgetLowWater()
	return claimed(t, store, limit)
}

// workOff claims and completes jobs until none is left.
func workOff(t *testing.T, store *postgres.Store) {
	t.Helper()
	for {
		if len(fresh(t, store, 100)) == 0 {
			return
		}
		complete(t, store, 1000)
	}
}

// TestTenantQueuesOfTenantsWhoWentAreForgotten has many tenants without jobs. A few others have jobs, or a token bucket
// that is not full. Prune goes on where it ended.
func TestTenantQueuesOfTenantsWhoWentAreForgotten(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(*sluice.Settings) {})
	_, err := tenancy.ChangeLimits(t.Context(), store, tenancy.Limits{Queue: "q", Tenant: "t05 slow"}, sluice.Act{By: "test"}, func(l *tenancy.Limits) error {
		l.Rate, l.Burst = new(sluice.RatePerSecond(0.001)), new(2)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var tenants []string
	for n := range 20 {
		tenants = append(tenants, fmt.Sprintf("t%02d", n))
	}
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, append(tenants, "t05 slow", "")...)
	workOff(t, store)
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "t03 flies")
	fresh(t, store, 1)
	enqueueOf(t, store, 1, sluice.EnqueueOptions{Delay: time.Hour}, "t04 waits")
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "t06 last")
	if got := fresh(t, store, 5); got["t06 last"] != 1 {
		t.Fatalf("claimed %v", got)
	}
	complete(t, store, 1)
	fresh(t, store, 5)
	for range 4 {
		prune(t, store, 8)
	}
	if left, wanted := count(t, store, "tenant_queue"), count(t, store, "tenant_queue where tenant in ('t03 flies', 't04 waits', 't05 slow')"); left != 3 || wanted != 3 {
		t.Errorf("%d tenant queues are left, %d of those with something to do; want these 3", left, wanted)
	}
	run(t, store, "update sluice.tenant_queue set filled_at = filled_at - interval '1 hour' where tenant = 't05 slow'")
	prune(t, store, 8)
	if count(t, store, "tenant_queue where tenant = 't05 slow'") != 0 {
		t.Error("the tenant queue of a tenant whose tokens are full is left")
	}
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, tenants...)
	workOff(t, store)
	if n := count(t, store, "live where state = 'queued' and due_at <= now()"); n != 0 {
		t.Errorf("%d jobs of tenants who came back are stuck", n)
	}
}

// TestTenantQueueAheadOfTheOthersIsKept has a tenant that got more than its share and has no jobs for a moment. Its
// place behind the others must stay.
func TestTenantQueueAheadOfTheOthersIsKept(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(*sluice.Settings) {})
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "ahead")
	workOff(t, store)
	run(t, store, "update sluice.tenant_queue set virtual_start = virtual_start + 50, version = version + 1")
	prune(t, store, 100)
	if n := count(t, store, "tenant_queue"); n != 1 {
		t.Fatalf("%d tenant queues are left, want the one ahead of the others", n)
	}
	run(t, store, "update sluice.flow set virtual_start = virtual_start + 50")
	prune(t, store, 100)
	if n := count(t, store, "tenant_queue"); n != 0 {
		t.Errorf("%d tenant queues are left once the others have caught up, want none", n)
	}
}

// TestTenantQueuesAreLeftWhereAClaimIsAtWork has a claim that is not committed. Prune cannot know which tenant queues
// it serves.
func TestTenantQueuesAreLeftWhereAClaimIsAtWork(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(*sluice.Settings) {})
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "a", "b")
	workOff(t, store)
	claim, err := store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = claim.Exec(t.Context(), "select from sluice.flow where queue = 'q' for update")
	if err != nil {
		t.Fatal(err)
	}
	prune(t, store, 100)
	if n := count(t, store, "tenant_queue"); n != 2 {
		t.Errorf("%d tenant queues are left, want 2", n)
	}
	if err := claim.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	prune(t, store, 100)
	if n := count(t, store, "tenant_queue"); n != 0 {
		t.Errorf("%d tenant queues are left, want none", n)
	}
}

// TestTenantQueueThatIsMadeAnewIsTheNewestOfItsTenant checks the versions of a tenant queue. An old transaction keeps
// earlier versions, and a search from the highest version down must not walk over them.
func TestTenantQueueThatIsMadeAnewIsTheNewestOfItsTenant(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(*sluice.Settings) {})
	version := func() (v int64) {
		t.Helper()
		if err := store.Pool().QueryRow(t.Context(), "select version from sluice.tenant_queue").Scan(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for range 5 {
		enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "a")
		workOff(t, store)
	}
	before := version()
	prune(t, store, 100)
	if n := count(t, store, "tenant_queue"); n != 0 {
		t.Fatalf("%d tenant queues are left after a prune, want none", n)
	}
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "a")
	claimed(t, store, 1)
	if after := version(); after <= before {
		t.Errorf("its version is %d, and %d was taken", after, before)
	}
}

// TestTenantChangesOfAQueueWithoutClaimsAreTakenIn has queues without claims, and more tenant changes than one claim
// takes in.
func TestTenantChangesOfAQueueWithoutClaimsAreTakenIn(t *testing.T) {
	t.Parallel()
	act := sluice.Act{By: "test"}
	for name, change := range map[string]func(*sluice.Settings){
		"paused":                 func(s *sluice.Settings) { s.Paused = true },
		"nobody works for it":    func(*sluice.Settings) {},
		"not in turns any more":  func(s *sluice.Settings) { s.Fair = false },
		"limited, not in turns":  func(s *sluice.Settings) { s.Fair, s.Rate = false, sluice.RatePerSecond(100) },
		"paused before, not now": func(s *sluice.Settings) { s.Paused, s.Fair = true, false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := openFair(t, func(*sluice.Settings) {})
			client := sluice.NewClient(store, sluice.ClientOptions{})
			enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "before")
			workOff(t, store)
			enqueueOf(t, store, 2, sluice.EnqueueOptions{}, "a", "b")
			run(t, store, "insert into sluice.tenant_change (queue, tenant, jobs, room) select 'q', 't' || n % 3, 0, true from generate_series(1, 6000) n")
			if _, err := client.ChangeSettings(t.Context(), "q", act, func(s *sluice.Settings) error { change(s); return nil }); err != nil {
				t.Fatal(err)
			}
			repair(t, store)
			if n := count(t, store, "tenant_change"); n < 6000 {
				t.Fatalf("%d tenant changes are left: those that are new are the claims'", n)
			}
			run(t, store, "update sluice.tenant_change set at = at - interval '1 hour'")
			store.ForgetLowWater()
			repair(t, store)
			repair(t, store) // the first call takes out jobs that wait in tenant queues
			if n := count(t, store, "tenant_change where at < now() - interval '1 minute'"); n != 0 {
				t.Errorf("%d tenant changes are left", n)
			}
			_, err := client.ChangeSettings(t.Context(), "q", act, func(s *sluice.Settings) error { s.Paused, s.Fair, s.Rate = false, true, sluice.Rate{}; return nil })
			if err != nil {
				t.Fatal(err)
			}
			if got := claimed(t, store, 9); got["a"] != 2 || got["b"] != 2 {
				t.Errorf("claimed %v, want 2 of each", got)
			}
		})
	}
}

// TestTenantChangesStayWhileJobsStandInTenantQueue stops a queue from serving tenants in turns, with more jobs than one
// call takes out. Turns begin again before all are out. Only its tenant change shows the last tenant.
func TestTenantChangesStayWhileJobsStandInTenantQueue(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(*sluice.Settings) {})
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "before")
	workOff(t, store)
	enqueueOf(t, store, 1100, sluice.EnqueueOptions{}, "many")
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "last")
	run(t, store, "update sluice.queue set fair = false")
	run(t, store, "update sluice.tenant_change set at = at - interval '1 hour'")
	run(t, store, "delete from sluice.tenant_change where tenant = 'many'")
	store.ForgetLowWater()
	repair(t, store)
	run(t, store, "delete from sluice.tenant_change where at > now() - interval '1 minute'") // changes that upkeep itself has made
	run(t, store, "update sluice.queue set fair = true")
	if got := claimed(t, store, 10); got["last"] != 1 {
		t.Errorf("claimed %v, want the last one's job, too", got)
	}
}

// TestEndThatWasToldWhileTenantsDidNotTakeTurnsIsNotForgotten has a tenant at its concurrency while the queue stops
// serving in turns. Only the change that upkeep takes in then shows the free place.
func TestEndThatWasToldWhileTenantsDidNotTakeTurnsIsNotForgotten(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(s *sluice.Settings) { s.TenantConcurrency = 1 })
	enqueueOf(t, store, 3, sluice.EnqueueOptions{}, "a")
	claimed(t, store, 1)
	if got := claimed(t, store, 1); len(got) != 0 {
		t.Fatalf("claimed %v beyond the concurrency", got)
	}
	run(t, store, "update sluice.queue set fair = false, tenant_concurrency = 0")
	run(t, store, "delete from sluice.tenant_change")
	complete(t, store, 1)
	run(t, store, "update sluice.tenant_change set at = at - interval '1 hour'")
	store.ForgetLowWater()
	repair(t, store)
	run(t, store, "delete from sluice.tenant_change where terms") // changes that upkeep itself has made
	repair(t, store)
	if n := count(t, store, "tenant_change where room"); n != 0 {
		t.Errorf("%d tenant changes are left", n)
	}
	if n := count(t, store, "tenant_queue where active"); n != 1 {
		t.Error("the tenant queue sleeps on")
	}
	run(t, store, "update sluice.queue set fair = true")
	if got := claimed(t, store, 5); got["a"] != 2 {
		t.Errorf("claimed %v, want 2", got)
	}
}

// TestUpkeepOfManyTenantChangesIsBounded has more tenant changes than one call of upkeep takes in.
func TestUpkeepOfManyTenantChangesIsBounded(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(s *sluice.Settings) { s.Paused = true })
	run(t, store, "insert into sluice.flow (queue) values ('q')")
	run(t, store, "insert into sluice.tenant_change (queue, at, tenant, jobs, room) select 'q', now() - interval '1 hour', 'a', 0, true from generate_series(1, 60000) n")
	repair(t, store)
	if n := count(t, store, "tenant_change"); n != 9000 {
		t.Errorf("%d tenant changes are left of 60,000, want 9,000", n)
	}
	repair(t, store)
	if n := count(t, store, "tenant_change"); n != 0 {
		t.Errorf("%d tenant changes are left", n)
	}
}
