// Package tenancy keeps tenants, their tiers, and what a queue grants to each: how many jobs in flight, at which rate, with which
// share, and whether they are paused. Begin with [ChangeLimits] and [SetTier]; package explain says why a tenant's job waits.
package tenancy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Tenant is somebody whom jobs belong to. A job may name a tenant that was never stored; a stored
// one has a tier.
type Tenant struct {
	Name string `json:"name"`
	// Tier names the tenant's class; empty: none.
	Tier    string `json:"tier,omitempty"`
	Version int64  `json:"version"`
	// ChangedAt, ChangedBy and Reason tell of the last change.
	ChangedAt time.Time `json:"changed_at"`
	ChangedBy string    `json:"changed_by"`
	Reason    string    `json:"reason,omitempty"`
}

// Tier is a class of tenants, such as FREE or PRO.
type Tier struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	// ChangedAt, ChangedBy and Reason tell of the last change.
	ChangedAt time.Time `json:"changed_at"`
	ChangedBy string    `json:"changed_by"`
	Reason    string    `json:"reason,omitempty"`
}

// List lists stored tenants by name, from the one that follows after.
func List(ctx context.Context, store sluice.Store, after string, limit int) ([]Tenant, error) {
	limit, err := feature.PageSize(limit)
	if err != nil {
		return nil, err
	}
	return Given(store).Tenants(ctx, after, limit)
}

// Tiers lists the tiers by name.
func Tiers(ctx context.Context, store sluice.Store) ([]Tier, error) { return Given(store).Tiers(ctx) }

// AddTier stores a tier. One of that name that is there already is a [sluice.ErrConflict].
func AddTier(ctx context.Context, store sluice.Store, name string, act sluice.Act) (Tier, error) {
	if err := act.Check(); err != nil {
		return Tier{}, err
	}
	if err := checkName("tier", name); err != nil {
		return Tier{}, err
	}
	return Given(store).SaveTier(ctx, Tier{Name: name}, act)
}

// SetTier stores which tier a tenant is in, and the tenant with it. The tier must be stored; an
// empty one takes the tenant out of its tier.
func SetTier(ctx context.Context, store sluice.Store, tenant, tier string, act sluice.Act) (Tenant, error) {
	if err := act.Check(); err != nil {
		return Tenant{}, err
	}
	if err := checkName("tenant", tenant); err != nil {
		return Tenant{}, err
	}
	if err := checkTier(ctx, store, tier); err != nil {
		return Tenant{}, err
	}
	for {
		now, err := Given(store).Tenant(ctx, tenant)
		if err != nil && !errors.Is(err, sluice.ErrNotFound) {
			return Tenant{}, err
		}
		now.Name, now.Tier = tenant, tier
		stored, err := Given(store).SaveTenant(ctx, now, act)
		if !errors.Is(err, sluice.ErrConflict) {
			return stored, err
		}
	}
}

func checkTier(ctx context.Context, store sluice.Store, name string) error {
	if name == "" {
		return nil
	}
	tiers, err := Given(store).Tiers(ctx)
	if err != nil {
		return err
	}
	for _, t := range tiers {
		if t.Name == name {
			return nil
		}
	}
	return fmt.Errorf("tier %.80q: %w", name, sluice.ErrNotFound)
}

// checkName returns an error if the name of a tenant or tier is empty or cannot be stored.
func checkName(field, name string) error {
	if name == "" {
		return feature.Invalid(field, "it needs a name")
	}
	var broken *sluice.InvalidError
	if errors.As(sluice.CheckTenantName(name), &broken) {
		return feature.Invalid(field, broken.Rule)
	}
	return nil
}
