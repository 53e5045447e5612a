package postgres

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/tenancy"
)

//go:embed sql/tenant_limits.sql
var tenantLimitsSQL string

//go:embed sql/tenant_limits_save.sql
var tenantLimitsSaveSQL string

//go:embed sql/tenant_limits_ended.sql
var tenantLimitsEndedSQL string

//go:embed sql/tier_delete.sql
var tierDeleteSQL string

//go:embed sql/tier_leave.sql
var tierLeaveSQL string

//go:embed sql/tenant_delete.sql
var tenantDeleteSQL string

// TenantLimits lists the limits of a tier, of a tenant, or of every tier.
func (s *Store) TenantLimits(ctx context.Context, tier, tenant string) ([]tenancy.Limits, error) {
	var out []tenancy.Limits
	err := s.call(ctx, "list limits", func(ctx context.Context, _ bool) (err error) {
		out, err = tenantLimits(ctx, s.pool, tier, tenant)
		return err
	})
	return out, err
}

func tenantLimits(ctx context.Context, db rowsQuerier, tier, tenant string) ([]tenancy.Limits, error) {
	return list(ctx, db, func(row pgx.CollectableRow) (tenancy.Limits, error) { return scanLimits(row) }, tenantLimitsSQL, tier, tenant)
}

// scanLimits reads limits from the columns after the first ones.
func scanLimits(row pgx.CollectableRow, before ...any) (tenancy.Limits, error) {
	var l tenancy.Limits
	var rate *float64
	var ratePer *int64
	var until, pausedUntil pgtype.Timestamptz
	err := row.Scan(append(before, &l.Queue, &l.Tier, &l.Tenant, &l.Concurrency, &rate, &ratePer, &l.Burst, &l.Weight, &until,
		&l.Paused, &pausedUntil, &l.Version, &l.ChangedAt, &l.ChangedBy, &l.Reason)...)
	if rate != nil {
		l.Rate = new(sluice.StoredRate(*rate, orZero(ratePer)))
	}
	l.Until, l.PausedUntil, l.ChangedAt = timeOf(until), timeOf(pausedUntil), l.ChangedAt.UTC()
	return l, err
}

// EffectiveLimits returns the limits in effect of tenants.
func (s *Store) EffectiveLimits(ctx context.Context, queue sluice.Queue, tenants []string, at time.Time) (map[string]sluice.EffectiveLimits, error) {
	out := make(map[string]sluice.EffectiveLimits, len(tenants))
	err := s.call(ctx, "look at limits", func(ctx context.Context, _ bool) error {
		all, err := termsOf(ctx, s.pool, queue.Name, queue.Settings, tenants, at)
		for tenant, t := range all {
			out[tenant] = t.EffectiveLimits
		}
		return err
	})
	return out, err
}

// SaveTenantLimits stores limits and their audit entry. Triggers wake the tenant queues.
func (s *Store) SaveTenantLimits(ctx context.Context, limits tenancy.Limits, act sluice.Act) (tenancy.Limits, error) {
	saved, err := save(ctx, s, "save limits", saving.Limits, limits, act, home[tenancy.Limits]{
		stored: func(ctx context.Context, db rowsQuerier) ([]tenancy.Limits, error) {
			all, err := tenantLimits(ctx, db, limits.Tier, limits.Tenant)
			return slices.DeleteFunc(all, func(l tenancy.Limits) bool { return l.Queue != limits.Queue }), err
		},
		store: func(ctx context.Context, tx pgx.Tx, _ *tenancy.Limits) (time.Time, error) {
			rate, ratePer := limits.Rate.Columns()
			return savedRow(ctx, tx, tenantLimitsSaveSQL, limits.Queue, limits.Tier, limits.Tenant, limits.Concurrency, rate, limits.Burst,
				limits.Weight, nullTime(limits.Until), limits.Paused, nullTime(limits.PausedUntil), limits.Version, act.By, act.Reason, ratePer)
		},
	})
	if err == nil {
		s.signal(sluice.Signal{Queue: limits.Queue})
	}
	return saved, err
}

// endTenantLimits ends pauses and limits of tenants whose time is over.
func (s *Store) endTenantLimits(ctx context.Context, by string) error {
	var now time.Time
	var ended []tenancy.Limits
	err := s.call(ctx, "look for limits whose time is over", func(ctx context.Context, _ bool) (err error) {
		if now, err = readNow(ctx, s.pool); err != nil {
			return err
		}
		ended, err = list(ctx, s.pool, func(row pgx.CollectableRow) (tenancy.Limits, error) { return scanLimits(row) }, tenantLimitsEndedSQL, now, saving.MostEnded)
		return err
	})
	for _, l := range ended {
		if _, err := s.SaveTenantLimits(ctx, saving.WithoutEnded(l, now), saving.EndedBy(by)); err != nil && !errors.Is(err, sluice.ErrConflict) {
			return err
		}
	}
	return err
}

// leaveBatch is how many tenants one transaction looks at of those that leave a tier, so that each is brief.
const leaveBatch = 2000

// leaveTier takes the tenants of a tier out of it, unless the act has deleted the tier before.
func (s *Store) leaveTier(ctx context.Context, tier string, act sluice.Act) error {
	for after := ""; ; {
		var last []string
		err := s.once(ctx, "take tenants out of tier", audit.ObjectTier, tier, act, func(ctx context.Context, tx pgx.Tx, _ bool) (err error) {
			last, err = list(ctx, tx, pgx.RowTo[string], tierLeaveSQL, tier, act.By, act.Reason, nullUUID(act.ID), after, leaveBatch)
			return err
		})
		if err != nil || len(last) == 0 {
			return err
		}
		after = last[0]
	}
}

// Delete deletes a tier or a tenant, and its limits.
func (s *Store) Delete(ctx context.Context, object sluice.Object, name string, act sluice.Act) error {
	text, act := tenantDeleteSQL, saving.Named(act)
	if object == audit.ObjectTier {
		text = tierDeleteSQL
		if err := s.leaveTier(ctx, name, act); err != nil {
			return err
		}
	}
	err := s.strike(ctx, "delete "+string(object), object, name, act, text, name, act.By, act.Reason, nullUUID(act.ID))
	if err == nil {
		s.signal(sluice.Signal{})
	}
	return err
}
