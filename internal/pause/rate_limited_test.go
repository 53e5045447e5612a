package pause_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pause"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/tenancy"
)

// tenants embeds under another name than that of the store.
type tenants = tenancy.Store

// crowded is a store in which somebody acts right after the limits of a tenant were read for the first time.
type crowded struct {
	sluice.Store
	tenants
	act func()
}

func (c *crowded) TenantLimits(ctx context.Context, tier, tenant string) ([]tenancy.Limits, error) {
	found, err := c.tenants.TenantLimits(ctx, tier, tenant)
	if act := c.act; act != nil {
		c.act = nil
		act()
	}
	return found, err
}

func TestARateLimitedJobNeverShortensAPauseOfTheSameMoment(t *testing.T) {
	t.Parallel()
	store, ada := memory.New(memory.Options{}), sluice.Act{By: "ada", Reason: "they asked"}
	beside := &crowded{store, tenancy.Given(store), func() {
		if _, err := tenancy.Pause(t.Context(), store, "q", "acme", 0, ada); err != nil {
			t.Error(err)
		}
	}}
	claim := &sluice.Claim{Job: sluice.Job{Queue: "q", Tenant: "acme"}}
	if err := pause.Shared(t.Context(), beside, claim, sluice.DefaultSettings(), time.Minute, sluice.Act{By: "worker"}); err != nil {
		t.Fatal(err)
	}
	found, err := tenancy.LimitsOf(t.Context(), store, "", "acme")
	if err != nil || len(found) != 1 || !found[0].Paused || !found[0].PausedUntil.IsZero() {
		t.Errorf("the tenant is %+v, want paused without an end: %v", found, err)
	}
}
