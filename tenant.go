package sluice

import (
	"context"
	"errors"
	"fmt"
	"time"
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

// Tenants lists stored tenants by name, from the one that follows after.
func (c *Client) Tenants(ctx context.Context, after string, limit int) ([]Tenant, error) {
	limit, err := pageLimit(limit)
	if err != nil {
		return nil, err
	}
	return c.store.Tenants(ctx, after, limit)
}

// Tiers lists the tiers by name.
func (c *Client) Tiers(ctx context.Context) ([]Tier, error) { return c.store.Tiers(ctx) }

// AddTier stores a tier. One of that name that is there already is an ErrConflict.
func (c *Client) AddTier(ctx context.Context, name string, act Act) (Tier, error) {
	if err := act.Check(); err != nil {
		return Tier{}, err
	}
	if err := checkRequiredName("tier", name); err != nil {
		return Tier{}, err
	}
	return c.store.SaveTier(ctx, Tier{Name: name}, act)
}

// SetTier stores which tier a tenant is in, and the tenant with it. The tier must be stored; an
// empty one takes the tenant out of its tier.
func (c *Client) SetTier(ctx context.Context, tenant, tier string, act Act) (Tenant, error) {
	if err := act.Check(); err != nil {
		return Tenant{}, err
	}
	if err := checkRequiredName("tenant", tenant); err != nil {
		return Tenant{}, err
	}
	if err := c.checkTier(ctx, tier); err != nil {
		return Tenant{}, err
	}
	for {
		now, err := c.store.Tenant(ctx, tenant)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return Tenant{}, err
		}
		now.Name, now.Tier = tenant, tier
		stored, err := c.store.SaveTenant(ctx, now, act)
		if !errors.Is(err, ErrConflict) {
			return stored, err
		}
	}
}

func (c *Client) checkTier(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	tiers, err := c.store.Tiers(ctx)
	if err != nil {
		return err
	}
	for _, t := range tiers {
		if t.Name == name {
			return nil
		}
	}
	return fmt.Errorf("tier %.80q: %w", name, ErrNotFound)
}

func checkRequiredName(field, name string) error {
	if name == "" {
		return invalid(field, "it needs a name")
	}
	return checkName(field, name, MaxTenantBytes)
}
