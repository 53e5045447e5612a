package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/internal/tenants"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/tenancy"
)

// tenants adds the routes of tenants and tiers.
func (a *API) tenants() {
	tenant := func(r Route) Route { r.Group, r.noun = "tenants", "tenant"; return r }
	add(a, tenant(Route{
		Method: "GET", Path: "/tenants", Name: "list-tenants", Summary: "list tenants that have a tier or limits",
		Needs: access.Look, Commands: []string{"tenants"},
	}), func(ctx context.Context, c *call, in *tenantsInput) (tenantList, error) {
		if in.Counts {
			found, err := tenants.List(ctx, c.api.store, c.api.client(), in.After, in.Limit)
			return tenantList{orEmpty(found)}, err
		}
		found, err := tenancy.List(ctx, c.api.store, in.After, in.Limit)
		out := tenantList{[]tenants.Row{}}
		for _, one := range found {
			out.Tenants = append(out.Tenants, tenants.Row{Tenant: one})
		}
		return out, err
	})
	add(a, tenant(Route{
		Method: "GET", Path: "/tenants/{tenant}", Name: "get-tenant", Summary: "read a tenant with its jobs and limits",
		Text: "A tenant without a tier or limits has its jobs alone.", Needs: access.Look, Commands: []string{"tenants"}, scope: ofTenant,
	}), func(ctx context.Context, c *call, in *getTenantInput) (tenants.Row, error) {
		if !in.Counts {
			return tenantAlone(ctx, c, in.Tenant)
		}
		return tenants.Get(ctx, c.api.store, c.api.client(), in.Tenant)
	})
	add(a, tenant(Route{
		Method: "PATCH", Path: "/tenants/{tenant}", Name: "set-tenant", Summary: "put a tenant into a tier, or set its limits",
		Needs: access.Operate, Commands: []string{"tenants set"},
	}), setTenant)
	add(a, tenant(Route{
		Method: "DELETE", Path: "/tenants/{tenant}", Name: "delete-tenant", Summary: "delete a tenant and its limits",
		Text: "Its jobs stay, under the queue's limits.", Needs: access.Operate, Commands: []string{"tenants delete"},
	}), func(ctx context.Context, c *call, in *tenantReasonInput) (done, error) {
		return done{true}, tenancy.Delete(ctx, c.api.store, in.Tenant, c.act(in.Reason))
	})
	add(a, tenant(Route{
		Method: "POST", Path: "/tenants/{tenant}/pause", Name: "pause-tenant", Summary: "pause a tenant",
		Needs: access.Operate, Commands: []string{"pause"},
	}), func(ctx context.Context, c *call, in *pauseTenantInput) (tenancy.Limits, error) {
		while, err := optional("for", in.Body.For)
		if err != nil {
			return tenancy.Limits{}, err
		}
		return tenancy.Pause(ctx, c.api.store, in.Body.Queue, in.Tenant, while, c.act(in.Body.Reason))
	})
	add(a, tenant(Route{
		Method: "POST", Path: "/tenants/{tenant}/resume", Name: "resume-tenant", Summary: "resume a tenant",
		Needs: access.Operate, Commands: []string{"resume"},
	}), func(ctx context.Context, c *call, in *resumeTenantInput) (done, error) {
		return done{true}, tenancy.Resume(ctx, c.api.store, in.Body.Queue, in.Tenant, c.act(in.Body.Reason))
	})
	a.tierRoutes()
	a.tenantSaving(tenant)
}

func (a *API) tierRoutes() {
	tier := func(r Route) Route { r.Group, r.noun = "tiers", "tier"; return r }
	add(a, tier(Route{
		Method: "GET", Path: "/tiers", Name: "list-tiers", Summary: "list tiers", Needs: access.Look, Commands: []string{"tiers"},
	}), func(ctx context.Context, c *call, _ *nothing) (tierList, error) {
		found, err := tenants.Tiers(ctx, c.api.store)
		return tierList{orEmpty(found)}, err
	})
	add(a, tier(Route{
		Method: "POST", Path: "/tiers", Name: "add-tier", Summary: "add a tier", Needs: access.Operate, Commands: []string{"tiers add"}, status: 201,
	}), func(ctx context.Context, c *call, in *tierInput) (tenancy.Tier, error) {
		return tenancy.AddTier(ctx, c.api.store, in.Body.Name, c.act(in.Body.Reason))
	})
	add(a, tier(Route{
		Method: "POST", Path: "/tiers/preset", Name: "preset-tiers", Summary: "add the tiers FREE, PRO and ENTERPRISE",
		Text: "Their tenants may have 1, 5 and 20 jobs in flight.", Needs: access.Operate, Commands: []string{"tiers preset"},
	}), presetTiers)
	add(a, tier(Route{
		Method: "PATCH", Path: "/tiers/{tier}", Name: "set-tier", Summary: "set what a tier grants each tenant",
		Needs: access.Operate, Commands: []string{"tiers set"},
	}), func(ctx context.Context, c *call, in *setTierInput) (tenancy.Limits, error) {
		b := in.Body
		return tenants.SetLimits(ctx, c.api.store, tenancy.Limits{Tier: in.Tier, Queue: b.Queue}, 0, b.limits, c.act(b.Reason))
	})
	add(a, tier(Route{
		Method: "DELETE", Path: "/tiers/{tier}", Name: "delete-tier", Summary: "delete a tier and its limits",
		Text: "Its tenants are then in none.", Needs: access.Operate, Commands: []string{"tiers delete"},
	}), func(ctx context.Context, c *call, in *tierReasonInput) (done, error) {
		return done{true}, tenancy.DeleteTier(ctx, c.api.store, in.Tier, c.act(in.Reason))
	})
}

// figures are values by the names of limits, as people write them. A null removes a limit.
type figures map[string]*string

// each sets the values, in the order of their names. An unknown name is an ErrInvalid.
func (f figures) each(set func(name, text string) error) error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		text := ""
		if f[name] != nil {
			text = *f[name]
		}
		err := set(name, text)
		if errors.Is(err, sluice.ErrNotFound) {
			return &sluice.InvalidError{Field: "set", Rule: err.Error()}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// optional reads a duration above 0. Empty: 0.
func optional(field, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	return positive(field, text)
}

// tenantList lists tenants.
type tenantList struct {
	// Tenants are sorted by name.
	Tenants []tenants.Row `json:"tenants"`
}

// tierList lists tiers.
type tierList struct {
	// Tiers are sorted by name.
	Tiers []tenants.TierRow `json:"tiers"`
}

// tenantsInput chooses tenants.
type tenantsInput struct {
	PageInput
	CountsInput
}

// CountsInput says how much to tell of tenants.
type CountsInput struct {
	Counts bool `query:"counts" doc:"with their jobs and limits; false is faster" default:"true"`
}

// getTenantInput names a tenant.
type getTenantInput struct {
	Tenant string `path:"tenant" doc:"the tenant" maxLength:"255"`
	CountsInput
}

// setTenantInput changes a tenant.
type setTenantInput struct {
	Tenant string `path:"tenant" doc:"the tenant" maxLength:"255"`
	Body   setTenantBody
}

// LimitsBody changes limits.
type LimitsBody struct {
	// Set has new values by name: concurrency, rate, burst and weight, such as concurrency: 5. A null removes a limit.
	Set figures `json:"set,omitempty" maxProperties:"10"`
	// Queue is the only queue of the limits. Missing: every queue.
	Queue string `json:"queue,omitempty" maxLength:"64"`
	wire.ReasonBody
}

func (b LimitsBody) limits(l *tenancy.Limits) error { return b.Set.each(l.Set) }

// setTenantBody changes a tenant.
type setTenantBody struct {
	LimitsBody
	// Tier is the new tier; an empty one is none. Missing: as it is.
	Tier *string `json:"tier,omitempty" maxLength:"64"`
	// For is how long the limits count, such as 2h. Missing: as long as the present ones, else for good.
	For string `json:"for,omitempty" maxLength:"20"`
}

// tenantView is a tenant after a change.
type tenantView struct {
	// Tenant is the tenant. Missing: its tier was not changed.
	Tenant *tenancy.Tenant `json:"tenant,omitempty"`
	// Limits are the changed limits. Missing: they were not changed.
	Limits *tenancy.Limits `json:"limits,omitempty"`
}

func setTenant(ctx context.Context, c *call, in *setTenantInput) (out tenantView, err error) {
	b := in.Body
	if b.Tier == nil && len(b.Set) == 0 {
		return out, &sluice.InvalidError{Field: "body", Rule: "must have tier or set"}
	}
	during, err := optional("for", b.For)
	if err != nil {
		return out, err
	}
	if b.Tier != nil {
		tenant, err := tenancy.SetTier(ctx, c.api.store, in.Tenant, *b.Tier, c.act(b.Reason))
		if errors.Is(err, sluice.ErrNotFound) {
			return out, &sluice.InvalidError{Field: "tier", Rule: fmt.Sprintf("there is no tier %.60q", *b.Tier)}
		}
		if err != nil {
			return out, err
		}
		out.Tenant = &tenant
	}
	if len(b.Set) > 0 {
		act := c.act(b.Reason)
		act.ID[15] ^= 1 // it follows from the key, so that a repeat changes nothing
		limits, err := tenants.SetLimits(ctx, c.api.store, tenancy.Limits{Tenant: in.Tenant, Queue: b.Queue}, during, b.limits, act)
		if err != nil {
			return out, err
		}
		out.Limits = &limits
	}
	return out, nil
}

// tenantReasonInput names a tenant, and a reason.
type tenantReasonInput struct {
	Tenant string `path:"tenant" doc:"the tenant" maxLength:"255"`
	Reason string `query:"reason" doc:"why, for the audit" maxLength:"1000"`
}

// pauseTenantInput pauses a tenant.
type pauseTenantInput struct {
	Tenant string `path:"tenant" doc:"the tenant" maxLength:"255"`
	Body   pauseTenantBody
}

// pauseTenantBody says where and for how long.
type pauseTenantBody struct {
	PauseBody
	// Queue is the only queue of the pause. Missing: every queue.
	Queue string `json:"queue,omitempty" maxLength:"64"`
}

// resumeTenantInput resumes a tenant.
type resumeTenantInput struct {
	Tenant string `path:"tenant" doc:"the tenant" maxLength:"255"`
	Body   resumeTenantBody
}

// resumeTenantBody says where.
type resumeTenantBody struct {
	wire.ReasonBody
	// Queue is the queue of the pause. Missing: that of every queue.
	Queue string `json:"queue,omitempty" maxLength:"64"`
}

// tierInput adds a tier.
type tierInput struct{ Body tierBody }

// tierBody is a new tier.
type tierBody struct {
	wire.ReasonBody
	// Name names the tier.
	Name string `json:"name" minLength:"1" maxLength:"64"`
}

// presetInput adds the usual tiers.
type presetInput struct{ Body presetBody }

// presetBody says where.
type presetBody struct {
	wire.ReasonBody
	// Queue is the only queue of the limits. Missing: every queue.
	Queue string `json:"queue,omitempty" maxLength:"64"`
}

func presetTiers(ctx context.Context, c *call, in *presetInput) (tierList, error) {
	for i, preset := range tenancy.PresetTiers() {
		act := c.act(in.Body.Reason)
		act.ID[14] ^= byte(i)
		if _, err := tenancy.AddTier(ctx, c.api.store, preset.Tier, act); err != nil && !errors.Is(err, sluice.ErrConflict) {
			return tierList{}, err
		}
		act.ID[15] ^= 1
		grant := func(l *tenancy.Limits) error { l.Concurrency = preset.Concurrency; return nil }
		if _, err := tenants.SetLimits(ctx, c.api.store, tenancy.Limits{Tier: preset.Tier, Queue: in.Body.Queue}, 0, grant, act); err != nil {
			return tierList{}, err
		}
	}
	found, err := tenants.Tiers(ctx, c.api.store)
	return tierList{orEmpty(found)}, err
}

// setTierInput changes the limits of a tier.
type setTierInput struct {
	Tier string `path:"tier" doc:"the tier" maxLength:"64"`
	Body LimitsBody
}

// tierReasonInput names a tier, and a reason.
type tierReasonInput struct {
	Tier   string `path:"tier" doc:"the tier" maxLength:"64"`
	Reason string `query:"reason" doc:"why, for the audit" maxLength:"1000"`
}
