// Package tenants lists tenants and tiers with their limits, for the command line and the HTTP API.
package tenants

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
)

// Row is a tenant with its jobs in all queues, its own limits and its tier's.
type Row struct {
	tenancy.Tenant
	// InFlight counts claimed and dispatched jobs. InFlightMore: there may be more. Null: not known.
	InFlight     *int `json:"in_flight"`
	InFlightMore bool `json:"in_flight_or_more,omitempty"`
	// Waiting counts queued jobs, as upkeep counted them last. WaitingMore: there may be more. Null: not known.
	Waiting     *int `json:"waiting"`
	WaitingMore bool `json:"waiting_or_more,omitempty"`

	// Limits are the tenant's own, which count first, and TierLimits those of its tier.
	Limits     []tenancy.Limits `json:"limits,omitempty"`
	TierLimits []tenancy.Limits `json:"tier_limits,omitempty"`
}

// TierRow is a tier with its limits.
type TierRow struct {
	tenancy.Tier
	// Limits are the limits of each tenant of the tier.
	Limits []tenancy.Limits `json:"limits,omitempty"`
}

// List lists tenants by name, after a name.
func List(ctx context.Context, store sluice.Store, client *sluice.Client, after string, limit int) ([]Row, error) {
	found, err := tenancy.List(ctx, store, after, limit)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return rowsOf(ctx, store, client, found)
}

// rowsOf reads what tenants have.
func rowsOf(ctx context.Context, store sluice.Store, client *sluice.Client, found []tenancy.Tenant) ([]Row, error) {
	tiers, err := Tiers(ctx, store)
	if err != nil {
		return nil, err
	}
	granted := make(map[string][]tenancy.Limits)
	for _, t := range tiers {
		granted[t.Name] = t.Limits
	}
	inFlight, waiting, err := tenantLoads(ctx, store, client)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, t := range found {
		limits, err := tenancy.LimitsOf(ctx, store, "", t.Name)
		if err != nil {
			return nil, err
		}
		row := Row{Tenant: t, Limits: limits, TierLimits: granted[t.Tier]}
		row.InFlight, row.InFlightMore = inFlight.of(t.Name)
		row.Waiting, row.WaitingMore = waiting.of(t.Name)
		rows = append(rows, row)
	}
	return rows, nil
}

// Get reads one tenant. One that has neither a tier nor limits has its jobs alone.
func Get(ctx context.Context, store sluice.Store, client *sluice.Client, name string) (Row, error) {
	stored, err := tenancy.Given(store).Tenant(ctx, name)
	if errors.Is(err, sluice.ErrNotFound) {
		stored, err = tenancy.Tenant{Name: name}, nil
	}
	if err != nil {
		return Row{}, err
	}
	rows, err := rowsOf(ctx, store, client, []tenancy.Tenant{stored})
	if err != nil {
		return Row{}, err
	}
	return rows[0], nil
}

// Tiers lists all tiers by name.
func Tiers(ctx context.Context, store sluice.Store) ([]TierRow, error) {
	tiers, err := tenancy.Tiers(ctx, store)
	if err != nil {
		return nil, err
	}
	limits, err := tenancy.LimitsOf(ctx, store, "", "")
	if err != nil {
		return nil, err
	}
	rows := make([]TierRow, len(tiers))
	for i, t := range tiers {
		rows[i].Tier = t
		for _, l := range limits {
			if l.Tier == t.Name {
				rows[i].Limits = append(rows[i].Limits, l)
			}
		}
	}
	return rows, nil
}

// SetLimits changes the limits of a tier or a tenant. A tenant's end after a while, unless that is 0.
func SetLimits(ctx context.Context, store sluice.Store, of tenancy.Limits, during time.Duration, set func(*tenancy.Limits) error, act sluice.Act) (tenancy.Limits, error) {
	return tenancy.ChangeLimits(ctx, store, of, act, func(l *tenancy.Limits) error {
		now := time.Now()
		if !l.Until.IsZero() && !l.Until.After(now) { // ended limits must not return
			l.Concurrency, l.Rate, l.Burst, l.Weight, l.Until = nil, nil, nil, nil, time.Time{}
		}
		if err := set(l); err != nil {
			return err
		}
		if l.Concurrency == nil && l.Rate == nil && l.Burst == nil && l.Weight == nil {
			l.Until = time.Time{}
		} else if during > 0 {
			l.Until = now.Add(during)
		}
		return nil
	})
}
