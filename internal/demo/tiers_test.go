package demo_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/demo"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/tenancy"
)

// TestTiersFindClaimsOverTheCapacity claims jobs with and without tiers, and then checks the claims against the tiers.
func TestTiersFindClaimsOverTheCapacity(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before  bool // whether the tiers existed when the jobs were claimed
		highest map[string]int
		over    map[string]int
	}{
		"kept":   {true, map[string]int{"FREE": 1, "PRO": 5, "ENTERPRISE": 8}, nil},
		"broken": {false, map[string]int{"FREE": 8, "PRO": 8, "ENTERPRISE": 8}, map[string]int{"FREE": 7, "PRO": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 1, 1, 16, 0, 0, 0, time.UTC)
			store := memory.New(memory.Options{Now: func() time.Time { return now }})
			client := sluice.NewClient(store, sluice.ClientOptions{})
			settings, act := sluice.DefaultSettings(), sluice.Act{By: "test", ID: sluice.NewID()}
			settings.Audit = sluice.AuditFull
			if _, err := client.EnsureQueue(t.Context(), "q", settings, act); err != nil {
				t.Fatal(err)
			}
			tenants := []string{"e", "g", "f", "h", "i"} // ENTERPRISE, three of PRO, FREE
			for _, tenant := range []string{"e", "f", "i"} {
				for range 8 {
					if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{Tenant: tenant}}); err != nil {
						t.Fatal(err)
					}
				}
			}
			now = now.Add(time.Second)
			claim := func() {
				if _, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 100, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()}); err != nil {
					t.Fatal(err)
				}
			}
			if !c.before {
				claim()
			}
			if err := demo.SetTiers(t.Context(), store, client, "q", tenants, act); err != nil {
				t.Fatal(err)
			}
			claim()
			tiers, err := demo.CheckTiers(t.Context(), store, client, "q")
			if err != nil || len(tiers) != 3 {
				t.Fatalf("%d tiers, %v", len(tiers), err)
			}
			for _, tier := range tiers {
				if tier.Tenants != 1 || tier.Jobs != 8 || tier.Highest != c.highest[tier.Tier] || tier.Over != c.over[tier.Tier] || tier.MedianWait != 1 {
					t.Errorf("%+v; want at most %d in flight, and %d claims too many", tier, c.highest[tier.Tier], c.over[tier.Tier])
				}
			}
		})
	}
}

func TestTenantThatIsInATierStaysThere(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	act := sluice.Act{By: "test"}
	if _, err := tenancy.AddTier(t.Context(), store, "GOLD", act); err != nil {
		t.Fatal(err)
	}
	if _, err := tenancy.SetTier(t.Context(), store, "a", "GOLD", act); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := demo.SetTiers(t.Context(), store, client, "q", []string{"b", "a"}, act); err != nil {
			t.Fatal(err)
		}
	}
	for tenant, want := range map[string]string{"a": "GOLD", "b": "PRO"} {
		if stored, err := tenancy.Given(store).Tenant(t.Context(), tenant); err != nil || stored.Tier != want {
			t.Errorf("tenant %s is in %q, %v; want %s", tenant, stored.Tier, err, want)
		}
	}
}
