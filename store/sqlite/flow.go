package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"time"

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
	err := s.read(ctx, "look at flows", func(tx runner) (err error) {
		out, err = flows(tx, topTenants, now())
		return err
	})
	return out, err
}

func flows(tx runner, topTenants int, at int64) ([]sluice.Flow, error) {
	rows, err := list(tx, flowScanner(at), flowsSQL, sluice.DepthLimit)
	if err != nil {
		return nil, err
	}
	byQueue := make(map[string]*flowRow, len(rows))
	for i := range rows {
		byQueue[rows[i].Queue] = &rows[i]
	}
	if err := countBlocked(tx, byQueue); err != nil {
		return nil, err
	}
	out := make([]sluice.Flow, len(rows))
	for i := range rows {
		if err := rows[i].findTenants(tx, topTenants, at); err != nil {
			return nil, err
		}
		out[i] = rows[i].Flow
	}
	return out, nil
}

// flowRow is a queue's flow as flows.sql returns it.
type flowRow struct {
	sluice.Flow
	byTenant bool
	settings sluice.Settings // only the limits
}

func flowScanner(at int64) func(*sql.Rows) (flowRow, error) {
	return func(rows *sql.Rows) (flowRow, error) {
		var out flowRow
		var tokens sql.NullFloat64
		var rate, tenantRate float64
		var ratePer, tenantRatePer int64
		var filledAt *int64
		s := &out.settings
		err := rows.Scan(&out.Queue, &rate, &ratePer, &s.Burst, &tokens, &filledAt, &out.byTenant,
			&s.TenantConcurrency, &tenantRate, &tenantRatePer, &s.TenantBurst, &out.AtLimit)
		s.Rate, s.TenantRate = sluice.StoredRate(rate, ratePer), sluice.StoredRate(tenantRate, tenantRatePer)
		if !s.Rate.IsZero() {
			out.Tokens = max(flow.Bucket{Tokens: tokens.Float64, FilledAt: timeOf(filledAt)}.Filled(*s, time.UnixMicro(at)).Tokens, 0) // a claim may have given tokens out ahead
		}
		return out, err
	}
}

func countBlocked(tx runner, byQueue map[string]*flowRow) error {
	_, err := list(tx, func(rows *sql.Rows) (struct{}, error) {
		var queue string
		var ordered bool
		var jobs int
		err := rows.Scan(&queue, &ordered, &jobs)
		f := byQueue[queue]
		switch {
		case f == nil: // the queue has no settings yet
		case ordered:
			f.Ordered = jobs
		default:
			f.After = jobs
		}
		return struct{}{}, err
	}, flowBlockedSQL, sluice.DepthLimit)
	return err
}

// findTenants adds the tenants with the most jobs in flight, and their limits in effect if the
// queue serves tenants in turns.
func (f *flowRow) findTenants(tx runner, topTenants int, at int64) (err error) {
	f.Tenants, err = list(tx, func(rows *sql.Rows) (of sluice.TenantFlow, err error) {
		err = rows.Scan(&of.Tenant, &of.InFlight)
		return of, err
	}, flowTenantsSQL, f.Queue, sluice.DepthLimit, topTenants)
	if err != nil || !f.byTenant || len(f.Tenants) == 0 {
		return err
	}
	tenants := make([]string, len(f.Tenants))
	for i, of := range f.Tenants {
		tenants[i] = of.Tenant
	}
	terms, err := termsOf(tx, f.Queue, f.settings, tenants, at)
	for i, tenant := range tenants {
		f.Tenants[i].EffectiveLimits = terms[tenant]
	}
	return err
}
