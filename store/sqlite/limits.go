package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/tenancy"
)

//go:embed sql/tenant_limits.sql
var tenantLimitsSQL string

//go:embed sql/tenant_limits_save.sql
var tenantLimitsSaveSQL string

//go:embed sql/tenant_limits_delete.sql
var tenantLimitsDeleteSQL string

//go:embed sql/tenant_limits_ended.sql
var tenantLimitsEndedSQL string

//go:embed sql/tier_delete.sql
var tierDeleteSQL string

//go:embed sql/tenant_delete.sql
var tenantDeleteSQL string

//go:embed sql/tenants_of_tier.sql
var tenantsOfTierSQL string

// TenantLimits lists the limits of a tier, of a tenant, or of every tier.
func (s *Store) TenantLimits(ctx context.Context, tier, tenant string) ([]tenancy.Limits, error) {
	var out []tenancy.Limits
	err := s.read(ctx, "list limits", func(tx runner) (err error) {
		out, err = tenantLimits(tx, tier, tenant)
		return err
	})
	return out, err
}

func tenantLimits(tx runner, tier, tenant string) ([]tenancy.Limits, error) {
	return list(tx, func(rows *sql.Rows) (tenancy.Limits, error) { return scanLimits(rows) }, tenantLimitsSQL, tier, tenant)
}

// scanLimits reads limits from the columns after the first ones.
func scanLimits(rows *sql.Rows, before ...any) (tenancy.Limits, error) {
	var l tenancy.Limits
	var rate *float64
	var ratePer *int64
	var until, pausedUntil *int64
	var changedAt int64
	err := rows.Scan(append(slices.Clone(before), &l.Queue, &l.Tier, &l.Tenant, &l.Concurrency, &rate, &ratePer, &l.Burst, &l.Weight, &until,
		&l.Paused, &pausedUntil, &l.Version, &changedAt, &l.ChangedBy, &l.Reason)...)
	if rate != nil {
		l.Rate = new(sluice.StoredRate(*rate, orZero(ratePer)))
	}
	l.Until, l.PausedUntil, l.ChangedAt = timeOf(until), timeOf(pausedUntil), timeOf(&changedAt)
	return l, err
}

// EffectiveLimits returns the limits in effect of tenants.
func (s *Store) EffectiveLimits(ctx context.Context, queue sluice.Queue, tenants []string, at time.Time) (map[string]sluice.EffectiveLimits, error) {
	var terms map[string]sluice.EffectiveLimits
	err := s.read(ctx, "look at limits", func(tx runner) (err error) {
		terms, err = termsOf(tx, queue.Name, queue.Settings, tenants, at.UnixMicro())
		return err
	})
	return terms, err
}

// SaveTenantLimits stores limits and their audit entry. Triggers wake the tenant queues.
func (s *Store) SaveTenantLimits(ctx context.Context, limits tenancy.Limits, act sluice.Act) (tenancy.Limits, error) {
	return save(ctx, s, "save limits", saving.Limits, limits, act, home[tenancy.Limits]{
		stored: func(tx runner) ([]tenancy.Limits, error) {
			all, err := tenantLimits(tx, limits.Tier, limits.Tenant)
			return slices.DeleteFunc(all, func(l tenancy.Limits) bool { return l.Queue != limits.Queue }), err
		},
		store: storeLimits,
	})
}

func storeLimits(tx runner, next tenancy.Limits) error {
	_, err := tx.exec(tenantLimitsSaveSQL, limitsRow(next)...)
	tx.signal(sluice.Signal{Queue: next.Queue})
	return err
}

// endTenantLimits ends pauses and limits of tenants whose time is over.
func endTenantLimits(tx runner, by string) error {
	at := now()
	ended, err := list(tx, func(rows *sql.Rows) (tenancy.Limits, error) { return scanLimits(rows) }, tenantLimitsEndedSQL, at, saving.MostEnded)
	if err != nil {
		return err
	}
	for _, was := range ended {
		if _, err := put(tx, saving.Limits, &was, saving.WithoutEnded(was, time.UnixMicro(at)), saving.EndedBy(by), home[tenancy.Limits]{store: storeLimits}); err != nil {
			return err
		}
	}
	return nil
}

func limitsRow(l tenancy.Limits) []any {
	rate, ratePer := l.Rate.Columns()
	return []any{
		l.Queue, l.Tier, l.Tenant, orNull(l.Concurrency), rate, orNull(l.Burst), orNull(l.Weight), micros(l.Until), l.Paused, micros(l.PausedUntil),
		l.Version, l.ChangedAt.UnixMicro(), l.ChangedBy, l.Reason, ratePer,
	}
}

func orNull(value *int) any {
	if value == nil {
		return nil
	}
	return *value
}

// Delete deletes a tier or a tenant, and its limits.
func (s *Store) Delete(ctx context.Context, object sluice.Object, name string, act sluice.Act) error {
	text, tier, tenant := tenantDeleteSQL, "", name
	act = saving.Named(act)
	if object == audit.ObjectTier {
		text, tier, tenant = tierDeleteSQL, name, ""
		if err := s.leaveTierInParts(ctx, tier, act); err != nil {
			return err
		}
	}
	return s.strike(ctx, "delete "+string(object), object, name, act, func(tx runner) (int64, error) {
		gone, err := affected(tx.exec(text, name))
		if err != nil || gone == 0 {
			return 0, err
		}
		tx.signal(sluice.Signal{})
		if _, err := tx.exec(tenantLimitsDeleteSQL, tier, tenant); err != nil || tier == "" {
			return gone, err
		}
		members, err := list(tx, scanTenant, tenantsOfTierSQL, tier)
		if err != nil {
			return gone, err
		}
		return gone, leaveTier(tx, members, act)
	})
}

// leaveBatch is how many tenants one transaction looks at of those that leave a tier, so that each is brief.
const leaveBatch = 2000

// leaveTierInParts takes the tenants of a tier out of it, unless the act has deleted the tier before.
func (s *Store) leaveTierInParts(ctx context.Context, tier string, act sluice.Act) error {
	for after := ""; ; {
		var part []tenancy.Tenant
		err := s.once(ctx, "take tenants out of tier", audit.ObjectTier, tier, act, func(tx runner) error {
			all, err := tiers(tx)
			if err != nil || !slices.ContainsFunc(all, func(t tenancy.Tier) bool { return t.Name == tier }) {
				return err
			}
			if part, err = list(tx, scanTenant, tenantsSQL, after, leaveBatch); err != nil {
				return err
			}
			members := slices.DeleteFunc(slices.Clone(part), func(t tenancy.Tenant) bool { return t.Tier != tier })
			return leaveTier(tx, members, act)
		})
		if err != nil || len(part) == 0 {
			return err
		}
		after = part[len(part)-1].Name
	}
}

// leaveTier takes tenants out of their tier. A new tier of that name begins without tenants.
func leaveTier(tx runner, members []tenancy.Tenant, act sluice.Act) error {
	for _, was := range members {
		next := was
		next.Tier = ""
		if _, err := put(tx, saving.Tenants, &was, next, act, home[tenancy.Tenant]{store: storeTenant}); err != nil {
			return err
		}
	}
	return nil
}
