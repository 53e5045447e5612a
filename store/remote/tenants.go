package remote

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/tenancy"
)

// tenantPath is the path of a tenant, and tierPath that of a tier.
func tenantPath(name string) string { return "/tenants/" + url.PathEscape(name) }
func tierPath(name string) string   { return "/tiers/" + url.PathEscape(name) }

// Tenant returns a stored tenant.
func (s *Store) Tenant(ctx context.Context, name string) (tenancy.Tenant, error) {
	const verb = "read a tenant"
	var tenant tenancy.Tenant
	err := s.call(ctx, request{verb: verb, path: tenantPath(name), query: params{"counts": {"false"}}.values(), out: &tenant})
	if err == nil && tenant.Version == 0 { // the server tells of the jobs of a tenant that is not stored
		return tenancy.Tenant{}, (&problem{Status: http.StatusNotFound, Code: "not_found", Why: "there is no such tenant"}).err(verb)
	}
	return tenant, err
}

// Tenants lists stored tenants by name.
func (s *Store) Tenants(ctx context.Context, after string, limit int) ([]tenancy.Tenant, error) {
	q := params{"counts": {"false"}, "limit": {strconv.Itoa(limit)}}
	q.text("after", after)
	var answer struct {
		Tenants []tenancy.Tenant `json:"tenants"`
	}
	err := s.call(ctx, request{verb: "list tenants", path: "/tenants", query: q.values(), out: &answer})
	return answer.Tenants, err
}

// SaveTenant stores a tenant.
func (s *Store) SaveTenant(ctx context.Context, tenant tenancy.Tenant, act sluice.Act) (saved tenancy.Tenant, err error) {
	body := wire.SaveTenantBody{Tier: tenant.Tier, SaveTierBody: wire.SaveTierBody{Version: tenant.Version, ReasonBody: why(act)}}
	err = s.call(ctx, saving("save a tenant", tenantPath(tenant.Name), &act, body, &saved))
	return saved, err
}

// Tiers lists the tiers by name.
func (s *Store) Tiers(ctx context.Context) ([]tenancy.Tier, error) {
	var answer struct {
		Tiers []tenancy.Tier `json:"tiers"`
	}
	err := s.call(ctx, request{verb: "list tiers", path: "/tiers", out: &answer})
	return answer.Tiers, err
}

// SaveTier stores a tier.
func (s *Store) SaveTier(ctx context.Context, tier tenancy.Tier, act sluice.Act) (saved tenancy.Tier, err error) {
	err = s.call(ctx, saving("save a tier", tierPath(tier.Name), &act, wire.SaveTierBody{Version: tier.Version, ReasonBody: why(act)}, &saved))
	return saved, err
}

// TenantLimits lists the limits of a tier or a tenant, or of all tiers.
func (s *Store) TenantLimits(ctx context.Context, tier, tenant string) (all []tenancy.Limits, err error) {
	q := params{}
	q.text("tier", tier)
	q.text("tenant", tenant)
	var answer wire.TenantLimitsList
	err = s.call(ctx, request{verb: "list limits of tenants", path: "/tenant-limits", query: q.values(), out: &answer})
	for _, view := range answer.Limits {
		all = append(all, view.Read())
	}
	return all, err
}

// SaveTenantLimits stores the limits of a tier or a tenant.
func (s *Store) SaveTenantLimits(ctx context.Context, limits tenancy.Limits, act sluice.Act) (tenancy.Limits, error) {
	var view wire.TenantLimitsView
	body := wire.SaveTenantLimitsBody{Limits: limits, Version: limits.Version, Reason: act.Reason}
	err := s.call(ctx, saving("save limits of tenants", "/tenant-limits", &act, body, &view))
	return view.Read(), err
}

// EffectiveLimits returns the limits that count for tenants in a queue.
func (s *Store) EffectiveLimits(ctx context.Context, queue sluice.Queue, tenants []string, at time.Time) (map[string]sluice.EffectiveLimits, error) {
	all := make(map[string]sluice.EffectiveLimits, len(tenants))
	for some := range slices.Chunk(tenants, maxNames) {
		var answer wire.EffectiveLimitsList
		err := s.call(ctx, request{
			verb: "read the limits of tenants", method: http.MethodPost, path: queuePath(queue.Name, "/tenant-limits"), out: &answer,
			body: asJSON(wire.EffectiveLimitsBody{Settings: settingsText(queue.Settings), Tenants: some, At: at}),
		})
		if err != nil {
			return nil, err
		}
		maps.Copy(all, answer.Limits)
	}
	return all, nil
}

// Delete deletes a tier or a tenant.
func (s *Store) Delete(ctx context.Context, object sluice.Object, name string, act sluice.Act) error {
	if object == audit.ObjectTier {
		return s.call(ctx, deleting("delete a tier", tierPath(name), &act))
	}
	return s.call(ctx, deleting("delete a tenant", tenantPath(name), &act))
}
