package tenancy_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/tenancy"
)

var ada = sluice.Act{By: "ada", Reason: "test"}

func TestLimitsAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	var limits tenancy.Limits
	for _, figure := range [][2]string{{"concurrency", "5"}, {"rate", "100/s"}, {"burst", "20"}, {"weight", "3"}} {
		if err := limits.Set(figure[0], figure[1]); err != nil {
			t.Fatal(err)
		}
	}
	if !limits.Say() || *limits.Concurrency != 5 || limits.Rate.String() != "100/s" || *limits.Burst != 20 || *limits.Weight != 3 {
		t.Errorf("they read as %+v", limits)
	}
	for _, name := range []string{"concurrency", "rate", "burst", "weight"} {
		if err := limits.Set(name, "many"); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s=many: %v, want an ErrInvalid", name, err)
		}
		if err := limits.Set(name, ""); err != nil {
			t.Errorf("%s without a text: %v", name, err)
		}
	}
	if limits.Say() {
		t.Errorf("limits that were all unset still say %+v", limits)
	}
	if err := limits.Set("speed", "1"); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("an unknown figure: %v, want an ErrNotFound", err)
	}
}

func TestLimitsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]tenancy.Limits{
		"of nobody":                   {},
		"of a tier and a tenant":      {Tier: "FREE", Tenant: "acme"},
		"of a tenant with a bad name": {Tenant: "a\nb"},
		"in a queue with a bad name":  {Tenant: "acme", Queue: "a b"},
		"of a tier that is paused":    {Tier: "FREE", Paused: true},
		"of a tier for a time":        {Tier: "FREE", Until: time.Now()},
		"until the year 20000":        {Tenant: "acme", Until: time.Date(20_000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"with a negative concurrency": {Tenant: "acme", Concurrency: new(-1)},
		"with a weight of 0":          {Tenant: "acme", Weight: new(0)},
		"with a weight over the most": {Tenant: "acme", Weight: new(tenancy.MaxWeight + 1)},
	} {
		if err := limits.Check(); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("limits %s: %v, want an ErrInvalid", name, err)
		}
	}
	for _, tier := range tenancy.PresetTiers() {
		if err := tier.Check(); err != nil || tier.Object() != audit.ObjectTier {
			t.Errorf("the preset %s: %v", tier.Name(), err)
		}
	}
}

func TestPausedTenantIsResumedOnlyWhereItWasPaused(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	if _, err := tenancy.Pause(t.Context(), store, "mail", "acme", -time.Second, ada); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("a negative while: %v, want an ErrInvalid", err)
	}
	paused, err := tenancy.Pause(t.Context(), store, "mail", "acme", time.Hour, ada)
	if err != nil {
		t.Fatal(err)
	}
	if !paused.PausedAt(time.Now()) || paused.PausedAt(time.Now().Add(2*time.Hour)) {
		t.Errorf("paused for an hour, it is %+v", paused)
	}
	for _, elsewhere := range []string{"", "calls"} {
		if err := tenancy.Resume(t.Context(), store, elsewhere, "acme", ada); !errors.Is(err, sluice.ErrNotFound) {
			t.Errorf("resumed in queue %q: %v, want an ErrNotFound", elsewhere, err)
		}
	}
	if err := tenancy.Resume(t.Context(), store, "mail", "acme", ada); err != nil {
		t.Fatal(err)
	}
	limits, err := tenancy.LimitsOf(t.Context(), store, "", "acme")
	if err != nil || len(limits) != 1 || limits[0].Paused {
		t.Errorf("after it was resumed: %+v, %v", limits, err)
	}
}

func TestTenantsAndTiersAreDeletedOnceAndByNamedPeople(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	if _, err := tenancy.Pause(t.Context(), store, "", "acme", 0, ada); err != nil {
		t.Fatal(err)
	}
	if err := tenancy.Delete(t.Context(), store, "acme", sluice.Act{}); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("by nobody: %v, want an ErrInvalid", err)
	}
	if err := tenancy.Delete(t.Context(), store, "acme", ada); err != nil {
		t.Fatal(err)
	}
	again := sluice.Act{By: "ada", Reason: "once more"}
	if err := tenancy.Delete(t.Context(), store, "acme", again); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("deleted twice: %v, want an ErrNotFound", err)
	}
	if err := tenancy.DeleteTier(t.Context(), store, "GOLD", again); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("a tier that never was: %v, want an ErrNotFound", err)
	}
}

func TestTenantsArePutIntoTiersThatAreStored(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	for _, limit := range []int{-1, 10_001} {
		if _, err := tenancy.List(t.Context(), store, "", limit); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("tenants, limit %d: %v", limit, err)
		}
	}
	if _, err := tenancy.SetTier(t.Context(), store, "acme", "PRO", ada); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("an unknown tier: %v", err)
	}
	if _, err := tenancy.AddTier(t.Context(), store, "", ada); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("a tier without a name: %v", err)
	}
	if _, err := tenancy.AddTier(t.Context(), store, "PRO", ada); err != nil {
		t.Fatal(err)
	}
	for _, tier := range []string{"PRO", "", "PRO"} {
		tenant, err := tenancy.SetTier(t.Context(), store, "acme", tier, ada)
		if err != nil || tenant.Tier != tier {
			t.Errorf("tier %q: %+v, %v", tier, tenant, err)
		}
	}
	if _, err := tenancy.SetTier(t.Context(), store, "", "PRO", ada); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("a tenant without a name: %v", err)
	}
	tiers, err := tenancy.Tiers(t.Context(), store)
	if err != nil || len(tiers) != 1 {
		t.Errorf("tiers %v, %v", tiers, err)
	}
	tenants, err := tenancy.List(t.Context(), store, "", 0)
	if err != nil || len(tenants) != 1 || tenants[0].Version != 3 {
		t.Errorf("tenants %+v, %v", tenants, err)
	}
}
