package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/internal/tenants"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/tenancy"
)

// tenantSaving adds the routes for programs that keep tenants, tiers and their limits themselves.
func (a *API) tenantSaving(tenant func(Route) Route) {
	const rule = "For programs. Stores it if its version is still that of the body; 0 makes it."
	add(a, tenant(Route{
		Method: "PUT", Path: "/tenants/{tenant}", Name: "save-tenant", Summary: "store a tenant", Text: rule,
		Needs: access.Operate, Commands: []string{"tenants set"},
	}), func(ctx context.Context, c *call, in *saveTenantInput) (tenancy.Tenant, error) {
		act := c.act(in.Body.Reason)
		names := []tenancy.Limits{{Tenant: in.Tenant}}
		if in.Body.Tier != "" {
			names = append(names, tenancy.Limits{Tier: in.Body.Tier})
		}
		if err := checkSaved(act, names...); err != nil {
			return tenancy.Tenant{}, err
		}
		return tenancy.Given(c.api.store).SaveTenant(ctx, tenancy.Tenant{Name: in.Tenant, Tier: in.Body.Tier, Version: in.Body.Version}, act)
	})
	add(a, Route{
		Method: "PUT", Path: "/tiers/{tier}", Name: "save-tier", Group: "tiers", Summary: "store a tier", Text: rule,
		Needs: access.Operate, Commands: []string{"tiers add"}, noun: "tier",
	}, func(ctx context.Context, c *call, in *saveTierInput) (tenancy.Tier, error) {
		act := c.act(in.Body.Reason)
		if err := checkSaved(act, tenancy.Limits{Tier: in.Tier}); err != nil {
			return tenancy.Tier{}, err
		}
		return tenancy.Given(c.api.store).SaveTier(ctx, tenancy.Tier{Name: in.Tier, Version: in.Body.Version}, act)
	})
	add(a, tenant(Route{
		Method: "GET", Path: "/tenant-limits", Name: "list-tenant-limits", Summary: "list the limits of a tier or a tenant",
		Text: "For programs. Without either, lists those of all tiers.", Needs: access.Look, Commands: []string{"tiers"},
	}), func(ctx context.Context, c *call, in *tenantLimitsInput) (wire.TenantLimitsList, error) {
		found, err := tenancy.LimitsOf(ctx, c.api.store, in.Tier, in.Tenant)
		out := wire.TenantLimitsList{Limits: []wire.TenantLimitsView{}}
		for _, l := range found {
			out.Limits = append(out.Limits, wire.TenantLimitsViewOf(l))
		}
		return out, err
	})
	add(a, tenant(Route{
		Method: "PUT", Path: "/tenant-limits", Name: "save-tenant-limits", Summary: "store the limits of a tier or a tenant", Text: rule,
		Needs: access.Operate, Commands: []string{"tenants set", "tiers set"},
	}), func(ctx context.Context, c *call, in *saveTenantLimitsInput) (wire.TenantLimitsView, error) {
		act, l := c.act(in.Body.Reason), in.Body.Limits
		l.Version, l.Until, l.PausedUntil = in.Body.Version, kept(l.Until), kept(l.PausedUntil)
		if err := checkSaved(act, l); err != nil {
			return wire.TenantLimitsView{}, err
		}
		saved, err := tenancy.Given(c.api.store).SaveTenantLimits(ctx, l, act)
		return wire.TenantLimitsViewOf(saved), err
	})
	add(a, Route{
		Method: "POST", Path: "/queues/{queue}/tenant-limits", Name: "read-effective-limits", Group: "tenants", Summary: "read the limits that count for tenants in a queue",
		Text:  "For programs. Of the tenant, its tier, and the settings of the body.",
		Needs: access.Look, Commands: []string{"forecast"}, scope: ofQueue, noun: "queue",
	}, func(ctx context.Context, c *call, in *effectiveLimitsInput) (wire.EffectiveLimitsList, error) {
		settings, err := settingsOf(in.Body.Settings)
		if err != nil {
			return wire.EffectiveLimitsList{}, err
		}
		found, err := tenancy.Given(c.api.store).EffectiveLimits(ctx, sluice.Queue{Name: in.Queue, Settings: settings}, in.Body.Tenants, in.Body.At)
		return wire.EffectiveLimitsList{Limits: found}, err
	})
}

// kept returns an instant as every store can keep it.
func kept(at time.Time) time.Time { return at.UTC().Truncate(time.Microsecond) }

// checkSaved returns the rule that an act breaks, or limits or names of tenants and tiers.
func checkSaved(act sluice.Act, saved ...tenancy.Limits) error {
	if err := act.Check(); err != nil {
		return err
	}
	for _, l := range saved {
		if err := l.Check(); err != nil {
			return err
		}
	}
	return nil
}

// tenantAlone reads a tenant without its jobs and limits.
func tenantAlone(ctx context.Context, c *call, name string) (tenants.Row, error) {
	found, err := tenancy.Given(c.api.store).Tenant(ctx, name)
	if errors.Is(err, sluice.ErrNotFound) {
		return tenants.Row{Tenant: tenancy.Tenant{Name: name}}, nil
	}
	return tenants.Row{Tenant: found}, err
}

// saveTenantInput stores a tenant.
type saveTenantInput struct {
	Tenant string `path:"tenant" doc:"the tenant" maxLength:"255"`
	Body   wire.SaveTenantBody
}

// saveTierInput stores a tier.
type saveTierInput struct {
	Tier string `path:"tier" doc:"the tier" maxLength:"255"`
	Body wire.SaveTierBody
}

// tenantLimitsInput chooses limits.
type tenantLimitsInput struct {
	Tier   string `query:"tier" doc:"the tier" maxLength:"255"`
	Tenant string `query:"tenant" doc:"the tenant" maxLength:"255"`
}

// saveTenantLimitsInput stores limits.
type saveTenantLimitsInput struct{ Body wire.SaveTenantLimitsBody }

// effectiveLimitsInput chooses tenants in a queue.
type effectiveLimitsInput struct {
	Queue string `path:"queue" doc:"the queue" maxLength:"64"`
	Body  wire.EffectiveLimitsBody
}
