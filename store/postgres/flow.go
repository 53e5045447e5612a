package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

//go:embed sql/flows.sql
var flowsSQL string

//go:embed sql/flow_blocked.sql
var flowBlockedSQL string

//go:embed sql/flow_tenants.sql
var flowTenantsSQL string

// Flows reports rates, limits and use of every stored queue.
func (s *Store) Flows(ctx context.Context, topTenants int) ([]sluice.Flow, error) {
	var out []sluice.Flow
	err := s.call(ctx, "look at flows", func(ctx context.Context, _ bool) (err error) {
		out, err = flows(ctx, s.pool, topTenants)
		return err
	})
	return out, err
}

func flows(ctx context.Context, db rowsQuerier, topTenants int) ([]sluice.Flow, error) {
	rows, err := list(ctx, db, scanFlow, flowsSQL, sluice.DepthLimit)
	if err != nil {
		return nil, err
	}
	byQueue := make(map[string]*flowRow, len(rows))
	for i := range rows {
		byQueue[rows[i].Queue] = &rows[i]
	}
	if err := countBlocked(ctx, db, byQueue); err != nil {
		return nil, err
	}
	if err := findTenants(ctx, db, byQueue, topTenants); err != nil {
		return nil, err
	}
	out := make([]sluice.Flow, len(rows))
	for i := range rows {
		if err := rows[i].findTerms(ctx, db); err != nil {
			return nil, err
		}
		out[i] = rows[i].Flow
	}
	return out, nil
}

// flowRow is a queue's flow as flows.sql returns it.
type flowRow struct {
	sluice.Flow
	now      time.Time
	byTenant bool
	settings sluice.Settings // only the limits
}

func scanFlow(row pgx.CollectableRow) (flowRow, error) {
	var out flowRow
	var tokens pgtype.Float8
	var rate, tenantRate float64
	var ratePer, tenantRatePer int64
	var filledAt pgtype.Timestamptz
	s := &out.settings
	err := row.Scan(&out.Queue, &out.now, &rate, &ratePer, &s.Burst, &tokens, &filledAt, &out.byTenant,
		&s.TenantConcurrency, &tenantRate, &tenantRatePer, &s.TenantBurst, &out.AtLimit)
	s.Rate, s.TenantRate = sluice.StoredRate(rate, ratePer), sluice.StoredRate(tenantRate, tenantRatePer)
	if !s.Rate.IsZero() {
		out.Tokens = max(flow.Bucket{Tokens: tokens.Float64, FilledAt: timeOf(filledAt)}.Filled(*s, out.now).Tokens, 0) // a claim may have given tokens out ahead
	}
	return out, err
}

func countBlocked(ctx context.Context, db rowsQuerier, byQueue map[string]*flowRow) error {
	rows, err := query(ctx, db, flowBlockedSQL, sluice.DepthLimit)
	if err != nil {
		return err
	}
	var queue string
	var ordered bool
	var jobs int
	_, err = pgx.ForEachRow(rows, []any{&queue, &ordered, &jobs}, func() error {
		f := byQueue[queue]
		switch {
		case f == nil: // the queue has no settings yet
		case ordered:
			f.Ordered = jobs
		default:
			f.After = jobs
		}
		return nil
	})
	return err
}

func findTenants(ctx context.Context, db rowsQuerier, byQueue map[string]*flowRow, topTenants int) error {
	rows, err := query(ctx, db, flowTenantsSQL, sluice.DepthLimit, topTenants)
	if err != nil {
		return err
	}
	var queue string
	var of sluice.TenantFlow
	_, err = pgx.ForEachRow(rows, []any{&queue, &of.Tenant, &of.InFlight}, func() error {
		if f := byQueue[queue]; f != nil {
			f.Tenants = append(f.Tenants, of)
		}
		return nil
	})
	return err
}

// findTerms adds the effective limits of tenants, if the queue serves tenants in turns.
func (f *flowRow) findTerms(ctx context.Context, db rowsQuerier) error {
	if !f.byTenant || len(f.Tenants) == 0 {
		return nil
	}
	tenants := make([]string, len(f.Tenants))
	for i, of := range f.Tenants {
		tenants[i] = of.Tenant
	}
	found, err := termsOf(ctx, db, f.Queue, f.settings, tenants, f.now)
	if err != nil {
		return err
	}
	for i, tenant := range tenants {
		f.Tenants[i].EffectiveLimits = found[tenant].EffectiveLimits
	}
	return nil
}
