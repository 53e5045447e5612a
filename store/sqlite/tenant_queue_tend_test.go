package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
)

// TestTenantQueuesOfTenantsWhoWentAreForgotten has many tenants without jobs. A few others have jobs, or a token bucket
// that is not full. Prune goes on where it ended, and a tenant that comes back is served.
func TestTenantQueuesOfTenantsWhoWentAreForgotten(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	act := sluice.Act{By: "test"}
	_, err := tenancy.ChangeLimits(t.Context(), store, tenancy.Limits{Queue: "q", Tenant: "slow"}, act, func(l *tenancy.Limits) error {
		l.Rate, l.Burst = new(sluice.RatePerSecond(0.001)), new(2)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	enqueue := func(delay time.Duration, tenants ...string) {
		t.Helper()
		for _, tenant := range tenants {
			job := sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{Tenant: tenant, Delay: delay}}
			if _, err := client.Enqueue(t.Context(), job); err != nil {
				t.Fatal(err)
			}
		}
	}
	claim := func(completes bool) (n int) {
		t.Helper()
		claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 20, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil {
			t.Fatal(err)
		}
		var settlements []sluice.Settlement
		for _, c := range claimed.Jobs {
			settlements = append(settlements, sluice.Settlement{ID: c.ID, Token: c.Token, Event: sluice.EventComplete})
		}
		if completes {
			if _, err := store.Settle(t.Context(), settlements); err != nil {
				t.Fatal(err)
			}
		}
		return len(claimed.Jobs)
	}
	lines := func(where string) (n int) {
		t.Helper()
		if err := store.DB().QueryRowContext(t.Context(), "select count(*) from sluice_tenant_queue where "+where).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	prune := func(times int) {
		t.Helper()
		for range times {
			if _, err := store.Prune(t.Context(), "", 4); err != nil {
				t.Fatal(err)
			}
		}
	}
	went := []string{"a", "b", "c", "d", "e", "f", "", "slow"}
	enqueue(0, went...)
	claim(true)
	enqueue(0, "flies")
	claim(false)
	enqueue(time.Hour, "waits")
	for claim(true) > 0 {
	}
	prune(3)
	if left, wanted := lines("true"), lines("tenant in ('flies', 'waits', 'slow')"); left != 3 || wanted != 3 {
		t.Errorf("%d tenant queues are left, %d of those with something to do; want these 3", left, wanted)
	}
	if _, err := store.DB().ExecContext(t.Context(), "update sluice_tenant_queue set filled_at = filled_at - 3600000000"); err != nil {
		t.Fatal(err)
	}
	prune(2)
	if lines("tenant = 'slow'") != 0 {
		t.Error("the tenant queue of a tenant whose tokens are full is left")
	}
	enqueue(0, went...)
	if n := claim(true); n != len(went) {
		t.Errorf("claimed %d jobs of tenants who came back, want %d", n, len(went))
	}
}
