package tenancy

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of tenants. SQLite, PostgreSQL and memory implement it beside sluice.Store.
type Store interface {
	// Tenant returns a stored tenant. An unknown tenant is an ErrNotFound.
	Tenant(ctx context.Context, name string) (Tenant, error)
	// Tenants lists stored tenants with names after a name, sorted by name.
	Tenants(ctx context.Context, after string, limit int) ([]Tenant, error)
	// SaveTenant stores a tenant, by the rule of SaveQueue of [sluice.Store].
	SaveTenant(ctx context.Context, tenant Tenant, act sluice.Act) (Tenant, error)
	// Tiers lists the tiers by name.
	Tiers(ctx context.Context) ([]Tier, error)
	// SaveTier stores a tier, by the rule of SaveQueue of [sluice.Store].
	SaveTier(ctx context.Context, tier Tier, act sluice.Act) (Tier, error)
	// TenantLimits lists the limits of a tier or of a tenant, by queue. Without either, it lists the limits of
	// every tier, by tier and queue.
	TenantLimits(ctx context.Context, tier, tenant string) ([]Limits, error)
	// EffectiveLimits returns the effective limits of tenants in a queue at an instant, with the queue's settings
	// as given. Claims follow the same limits. One query reads the limits of all tenants.
	EffectiveLimits(ctx context.Context, queue sluice.Queue, tenants []string, at time.Time) (map[string]sluice.EffectiveLimits, error)
	// SaveTenantLimits stores limits, by the rule of SaveQueue of [sluice.Store]. They apply from the next claim
	// on.
	SaveTenantLimits(ctx context.Context, limits Limits, act sluice.Act) (Limits, error)
	// Delete deletes a tier or a tenant, and its limits. An unknown name is an ErrNotFound.
	Delete(ctx context.Context, object sluice.Object, name string, act sluice.Act) error
}

// Given returns the port of a store, through decorators too. For nil, every method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without tenants, every method returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no tenants")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store without tenants. Every method returns the reason.
type missing struct{ err error }

func (m missing) Tenant(context.Context, string) (Tenant, error) { return Tenant{}, m.err }

func (m missing) Tenants(context.Context, string, int) ([]Tenant, error) { return nil, m.err }

func (m missing) SaveTenant(context.Context, Tenant, sluice.Act) (Tenant, error) {
	return Tenant{}, m.err
}

func (m missing) Tiers(context.Context) ([]Tier, error) { return nil, m.err }

func (m missing) SaveTier(context.Context, Tier, sluice.Act) (Tier, error) { return Tier{}, m.err }

func (m missing) TenantLimits(context.Context, string, string) ([]Limits, error) { return nil, m.err }

func (m missing) EffectiveLimits(context.Context, sluice.Queue, []string, time.Time) (map[string]sluice.EffectiveLimits, error) {
	return nil, m.err
}

func (m missing) SaveTenantLimits(context.Context, Limits, sluice.Act) (Limits, error) {
	return Limits{}, m.err
}

func (m missing) Delete(context.Context, sluice.Object, string, sluice.Act) error { return m.err }
