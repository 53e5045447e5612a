package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/tenancy"
)

// openFair makes a store with a queue q that serves tenants in turns.
func openFair(t *testing.T, change func(*sluice.Settings)) *postgres.Store {
	t.Helper()
	store := openStore(t, migrated.Copy(t))
	settings := sluice.DefaultSettings()
	settings.Fair = true
	change(&settings)
	if _, err := sluice.NewClient(store, sluice.ClientOptions{}).EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	return store
}

// enqueueOf enqueues n jobs for each of some tenants.
func enqueueOf(t *testing.T, store *postgres.Store, n int, options sluice.EnqueueOptions, tenants ...string) {
	t.Helper()
	var jobs []sluice.NewJob
	for _, tenant := range tenants {
		options.Tenant = tenant
		for range n {
			jobs = append(jobs, sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: options})
		}
	}
	if _, err := sluice.NewClient(store, sluice.ClientOptions{}).EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
}

// claimed returns how many jobs of each tenant a claim gets.
func claimed(t *testing.T, store *postgres.Store, limit int) map[string]int {
	t.Helper()
	got := make(map[string]int)
	for _, c := range answerOf(t, store, limit).Jobs {
		got[c.Tenant]++
	}
	return got
}

// answerOf is the answer to a claim of up to limit jobs.
func answerOf(t *testing.T, store *postgres.Store, limit int) sluice.Claimed {
	t.Helper()
	answer, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: limit, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func run(t *testing.T, store *postgres.Store, statement string, arguments ...any) {
	t.Helper()
	if _, err := store.Pool().Exec(t.Context(), statement, arguments...); err != nil {
		t.Fatal(err)
	}
}

// TestTurnsAreInOneOrderWhateverTheCollation has tenant names that a database sorts by its language, and programs by
// bytes. A tenant queue before the mark would never be found again.
func TestTurnsAreInOneOrderWhateverTheCollation(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(*sluice.Settings) {})
	run(t, store, `alter table sluice.tenant_queue alter column tenant type text collate "en-x-icu"`)
	enqueueOf(t, store, 10, sluice.EnqueueOptions{}, "a", "B")
	got := make(map[string]int)
	for range 12 {
		for tenant, n := range claimed(t, store, 4) {
			got[tenant] += n
		}
	}
	if got["a"] != 10 || got["B"] != 10 {
		t.Errorf("claimed %v, want all 10 of each", got)
	}
}

// TestTenantQueuesWakeAlthoughTheClockWasSetBack moves the last claim into the future. A tenant queue that goes to
// sleep then must wake up all the same.
func TestTenantQueuesWakeAlthoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(*sluice.Settings) {})
	enqueueOf(t, store, 2, sluice.EnqueueOptions{}, "a")
	enqueueOf(t, store, 1, sluice.EnqueueOptions{Delay: 10 * time.Minute}, "a")
	if got := claimed(t, store, 3); got["a"] != 2 {
		t.Fatalf("claimed %v, want 2", got)
	}
	run(t, store, "update sluice.flow set wakes_from = wakes_from + interval '1 hour', claimed_at = claimed_at + interval '1 hour'")
	if got := claimed(t, store, 3); len(got) != 0 {
		t.Fatalf("claimed %v before it is due", got)
	}
	run(t, store, "update sluice.live set due_at = due_at - interval '11 minutes'")
	run(t, store, "update sluice.tenant_queue set wake_at = wake_at - interval '11 minutes'")
	run(t, store, "update sluice.flow set wakes_from = wakes_from - interval '11 minutes', claimed_at = claimed_at - interval '11 minutes'")
	store.ForgetLowWater()
	if got := claimed(t, store, 3); got["a"] != 1 {
		t.Errorf("claimed %v when it is due, want 1", got)
	}
}

// complete completes n claimed jobs, the last claimed first.
func complete(t *testing.T, store *postgres.Store, n int) {
	t.Helper()
	rows, err := store.Pool().Query(t.Context(), "select id, token from sluice.live where state = 'claimed' order by claimed_at desc, id limit $1", n)
	if err != nil {
		t.Fatal(err)
	}
	settlements, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (sluice.Settlement, error) {
		var id, token [16]byte
		err := row.Scan(&id, &token)
		return sluice.Settlement{ID: id, Token: token, Event: sluice.EventComplete}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if errs, err := store.Settle(t.Context(), settlements); err != nil || errors.Join(errs...) != nil {
		t.Fatal(err, errs)
	}
}

func inFlight(t *testing.T, store *postgres.Store) (n int) {
	t.Helper()
	if err := store.Pool().QueryRow(t.Context(), "select count(*) from sluice.live where state = 'claimed'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCapacityIsKeptAlthoughTheClockWasSetBack moves all claims into the future. The store writes the queue's row once
// a second, so the row does not have the last claim.
func TestCapacityIsKeptAlthoughTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(s *sluice.Settings) { s.TenantConcurrency = 3 })
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "a")
	claimed(t, store, 1)
	complete(t, store, 1)
	run(t, store, "update sluice.flow set fair_since = fair_since - interval '1 hour'") // as if tenants had taken turns for 1 h
	enqueueOf(t, store, 2, sluice.EnqueueOptions{}, "a")
	claimed(t, store, 2)
	complete(t, store, 2)
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "a")
	claimed(t, store, 2)
	run(t, store, "update sluice.flow set claimed_at = claimed_at + interval '1 hour'")
	run(t, store, "update sluice.tenant_queue set counted_from = counted_from + interval '1 hour'")
	run(t, store, "update sluice.live set claimed_at = claimed_at + interval '1 hour'")
	enqueueOf(t, store, 9, sluice.EnqueueOptions{}, "a")
	for range 4 {
		claimed(t, store, 5)
		if n := inFlight(t, store); n > 3 {
			t.Fatalf("%d jobs are in flight, and three are allowed", n)
		}
		complete(t, store, 1)
	}
}

// TestCapacityIsKeptBesideAClaimThatBeganBeforeTenantsWereToldApart has a claim whose transaction is slow to end. The
// queue had tenant limits once before.
func TestCapacityIsKeptBesideAClaimThatBeganBeforeTenantsWereToldApart(t *testing.T) {
	t.Parallel()
	act := sluice.Act{By: "test"}
	for name, tellApart := range map[string]func(t *testing.T, store *postgres.Store, client *sluice.Client, apart bool) error{
		"by settings": func(t *testing.T, _ *postgres.Store, client *sluice.Client, apart bool) error {
			_, err := client.ChangeSettings(t.Context(), "q", act, func(s *sluice.Settings) error {
				s.TenantConcurrency = map[bool]int{true: 1}[apart]
				return nil
			})
			return err
		},
		"by limits": func(t *testing.T, store *postgres.Store, _ *sluice.Client, apart bool) error {
			if !apart {
				return tenancy.Delete(t.Context(), store, "a", act)
			}
			_, err := tenancy.ChangeLimits(t.Context(), store, tenancy.Limits{Queue: "q", Tenant: "a"}, act, func(l *tenancy.Limits) error {
				l.Concurrency = new(1)
				return nil
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := openFair(t, func(s *sluice.Settings) { s.Fair = false })
			client := sluice.NewClient(store, sluice.ClientOptions{})
			tell := func(apart bool) {
				t.Helper()
				if err := tellApart(t, store, client, apart); err != nil {
					t.Fatal(err)
				}
			}
			tell(true)
			enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "a")
			claimed(t, store, 1)
			complete(t, store, 1)
			run(t, store, "update sluice.flow set fair_since = fair_since - interval '1 hour'")
			tell(false)
			enqueueOf(t, store, 9, sluice.EnqueueOptions{}, "a")
			slow, err := store.Pool().Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = slow.Exec(t.Context(), `
				update sluice.live set state = 'claimed', token = md5('slow')::uuid, holder = 'slow', claimed_at = now(), lease_until = now() + interval '1 hour'
				where id = (select id from sluice.live order by id desc limit 1)`)
			if err != nil {
				t.Fatal(err)
			}
			tell(true)
			for range 3 {
				claimed(t, store, 1)
				complete(t, store, 1)
			}
			if err := slow.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			claimed(t, store, 1)
			if n := inFlight(t, store); n > 1 {
				t.Errorf("%d jobs are in flight, and one is allowed", n)
			}
		})
	}
}

// TestTenantQueuesWakeHoweverFarTheTurnsAre begins where 10,000,000,000 jobs were claimed by turns.
func TestTenantQueuesWakeHoweverFarTheTurnsAre(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(*sluice.Settings) {})
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "z")
	claimed(t, store, 1)
	run(t, store, "update sluice.flow set virtual_start = 1e10, tenant = 'z'")
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "a")
	if got := claimed(t, store, 1); got["a"] != 1 {
		t.Errorf("claimed %v, want 1 of a", got)
	}
}

// TestManyTenantChangesAreTakenInAtOnce has more tenant changes than one claim takes in, all of a tenant at its
// concurrency. The claim must say that it left changes.
func TestManyTenantChangesAreTakenInAtOnce(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(s *sluice.Settings) { s.TenantConcurrency = 1 })
	enqueueOf(t, store, 2, sluice.EnqueueOptions{}, "full")
	claimed(t, store, 1)
	run(t, store, "insert into sluice.tenant_change (queue, tenant, jobs, room) select 'q', 'full', 32, false from generate_series(1, 3500)")
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "other")
	for {
		request := sluice.ClaimRequest{Queue: "q", Limit: 5, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()}
		answer, err := store.Claim(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if len(answer.Jobs) > 0 {
			return
		}
		if answer.NextDue != 0 {
			t.Fatalf("nothing is claimed, and the next in %s", answer.NextDue)
		}
	}
}

// TestWhatAFailedClaimWasToldIsNotPassedOver makes a claim fail after it took in tenant changes. The rollback brings
// the changes back, and the next claim must take them in.
func TestWhatAFailedClaimWasToldIsNotPassedOver(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(*sluice.Settings) {})
	claimed(t, store, 1)
	store.WalkedFor("q", time.Hour) // so that claims begin at the mark
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "a")
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "b")
	run(t, store, "update sluice.tenant_change set at = at - interval '1 hour'")
	run(t, store, `create function fail() returns trigger language plpgsql as 'begin raise exception ''no''; end'`)
	run(t, store, "create trigger fail before insert on sluice.tenant_queue for each row execute function fail()")
	request := sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()}
	if _, err := store.Claim(t.Context(), request); err == nil {
		t.Fatal("the claim did not fail")
	}
	run(t, store, "drop trigger fail on sluice.tenant_queue")
	if got := claimed(t, store, 2); got["a"] != 1 || got["b"] != 1 {
		t.Errorf("claimed %v, want 1 of a and 1 of b", got)
	}
}

// TestTenantQueueThatIsMadeWhileItsTenantIsResumedDoesNotSleepOn has a claim that makes the tenant queue of a paused
// tenant. The tenant is resumed before the claim commits, so the resume does not see the tenant queue.
func TestTenantQueueThatIsMadeWhileItsTenantIsResumedDoesNotSleepOn(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(*sluice.Settings) {})
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "other")
	claimed(t, store, 1)
	if _, err := tenancy.Pause(t.Context(), store, "", "a", 0, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if got := claimed(t, store, 1); len(got) != 0 {
		t.Fatalf("claimed %v", got)
	}
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "a")
	claim, err := store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = claim.Exec(t.Context(), `
		with changes as (delete from sluice.tenant_change)
		insert into sluice.tenant_queue (queue, tenant, version, virtual_start, jobs, active) values ('q', 'a', 1, 10, 32, false)`)
	if err != nil {
		t.Fatal(err)
	}
	if err := tenancy.Resume(t.Context(), store, "", "a", sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := claim.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	store.ForgetLowWater()
	if got := claimed(t, store, 1); got["a"] != 1 {
		t.Errorf("claimed %v, want 1 of a", got)
	}
}

// TestEndsAreToldOnlyNearTheCapacity claims a few jobs, far below the concurrency, so their ends write no tenant
// change. Then it claims as many as the concurrency allows, and the first end must wake the tenant queue.
func TestEndsAreToldOnlyNearTheCapacity(t *testing.T) {
	t.Parallel()
	store := openFair(t, func(s *sluice.Settings) { s.TenantConcurrency = 10 })
	enqueueOf(t, store, 20, sluice.EnqueueOptions{}, "a")
	changes := func() (n int) {
		t.Helper()
		if err := store.Pool().QueryRow(t.Context(), "select count(*) from sluice.tenant_change").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	claimed(t, store, 2)
	complete(t, store, 2)
	if n := changes(); n != 0 {
		t.Errorf("%d ends were told of a tenant who is far from the concurrency", n)
	}
	if claimed(t, store, 2); claimed(t, store, 20)["a"] != 8 || claimed(t, store, 20)["a"] != 0 {
		t.Fatalf("%d are in flight, want the concurrency of 10", inFlight(t, store))
	}
	run(t, store, "delete from sluice.live where id in (select id from sluice.live where state = 'claimed' order by claimed_at limit 1)")
	for begun := time.Now(); claimed(t, store, 20)["a"] != 1; {
		if time.Since(begun) > 10*time.Minute {
			t.Fatal("the room that an untold end made was never found")
		}
	}
	complete(t, store, 8)
	if n := changes(); n == 0 {
		t.Error("no end was told of a tenant who is at the concurrency")
	}
}
