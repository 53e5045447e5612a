// Package tenancy keeps tenants, their tiers, and the limits of each in a queue: jobs in flight, rate, share, and
// pause.
//
// Begin with [ChangeLimits] and [SetTier]. [Pause] stops the claims of one tenant's jobs. [Store] is the port that
// SQLite, PostgreSQL and memory implement.
//
// Read next: docs/guide/tenants.md. Package explain says why a tenant's job waits.
package tenancy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Tenant is an owner of jobs. A job may name a tenant that the store does not have. A stored tenant may have a tier
// and limits.
type Tenant struct {
	// Name is the name that jobs give as their tenant.
	Name string `json:"name"`
	// Tier names the tenant's class. Empty: none. Version counts the changes.
	Tier    string `json:"tier,omitempty"`
	Version int64  `json:"version"`
	// ChangedAt, ChangedBy and Reason describe the last change.
	ChangedAt time.Time `json:"changed_at"`
	ChangedBy string    `json:"changed_by"`
	Reason    string    `json:"reason,omitempty"`
}

// Tier is a class of tenants, such as FREE or PRO.
type Tier struct {
	// Name names the tier. Version counts the changes.
	Name    string `json:"name"`
	Version int64  `json:"version"`
	// ChangedAt, ChangedBy and Reason describe the last change.
	ChangedAt time.Time `json:"changed_at"`
	ChangedBy string    `json:"changed_by"`
	Reason    string    `json:"reason,omitempty"`
}

// List lists stored tenants with names after a name, sorted by name. Limit is 1 to 10,000; 0 is 100.
func List(ctx context.Context, store sluice.Store, after string, limit int) ([]Tenant, error) {
	limit, err := feature.PageSize(limit)
	if err != nil {
		return nil, err
	}
	return Given(store).Tenants(ctx, after, limit)
}

// Tiers lists the tiers, sorted by name.
func Tiers(ctx context.Context, store sluice.Store) ([]Tier, error) { return Given(store).Tiers(ctx) }

// AddTier stores a new tier. If the tier exists, the error is a [sluice.ErrConflict].
func AddTier(ctx context.Context, store sluice.Store, name string, act sluice.Act) (Tier, error) {
	if err := act.Check(); err != nil {
		return Tier{}, err
	}
	if err := checkName("tier", name); err != nil {
		return Tier{}, err
	}
	return Given(store).SaveTier(ctx, Tier{Name: name}, act)
}

// SetTier puts a tenant into a tier, and stores the tenant if it is new. An unknown tier is a [sluice.ErrNotFound].
// An empty tier takes the tenant out of its tier.
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

// checkTier returns a [sluice.ErrNotFound] if the store has no such tier. The empty name is valid.
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

// checkName returns an error if the name of a tenant or tier is empty, or no store can keep it.
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
