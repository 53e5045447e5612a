package sluice

import (
	"context"
	"time"
)

// Flow describes which limits let the jobs of a queue through now, and which hold jobs back. A store reads a
// bounded number of rows for it.
type Flow struct {
	// Queue is the name of the queue.
	Queue string `json:"queue"`
	// Tokens is how many starts the queue's rate allows now. Negative: the rate is overdrawn. 0: none, or the queue
	// has no rate.
	Tokens float64 `json:"tokens"`
	// Ordered counts jobs that wait for an earlier job of their order key. After counts jobs that wait for a job
	// that they run after. A job that may wait for both counts as ordered. The store looks at [DepthLimit] blocked
	// jobs of all queues at most.
	Ordered int `json:"ordered"`
	After   int `json:"after"`
	// AtLimit counts the tenants that have reached their concurrency, as the last claims found them. The store
	// looks at [DepthLimit] tenants at most.
	AtLimit int `json:"at_limit"`
	// Tenants are the tenants with the most jobs in flight, the largest first.
	Tenants []TenantFlow `json:"tenants,omitempty"`
}

// TenantFlow describes the jobs that a tenant has in flight in a queue.
type TenantFlow struct {
	// Tenant is the name of the tenant.
	Tenant string `json:"tenant"`
	// InFlight counts the tenant's claimed and dispatched jobs, and its ended jobs with an orphan run.
	InFlight int `json:"in_flight"`
	// EffectiveLimits are the tenant's limits in the queue. Zero: the queue does not serve its tenants in turns.
	EffectiveLimits EffectiveLimits `json:"limits"`
}

// Flows returns the [Flow] of every stored queue, by name, with at most topTenants tenants each.
func (c *Client) Flows(ctx context.Context, topTenants int) ([]Flow, error) {
	return c.store.Flows(ctx, topTenants)
}

// EffectiveLimits are the limits that apply to a tenant in a queue, whether the tenant, its tier or the queue sets
// them.
type EffectiveLimits struct {
	// Concurrency is the most jobs that the tenant may have in flight. 0: no limit.
	Concurrency int `json:"concurrency,omitempty"`
	// Rate is how many jobs of the tenant may be claimed per time. Burst is how many may be claimed at once after a
	// lull. 0: no limit.
	Rate  Rate `json:"rate,omitzero"`
	Burst int  `json:"burst,omitempty"`
	// Weight is the tenant's share among the tenants that have work.
	Weight int `json:"weight"`
	// Until is when these limits end and others apply. Zero: never.
	Until time.Time `json:"until,omitzero"`
	// Paused says that nobody claims the tenant's jobs. The tenant opens again at PausedUntil. Zero PausedUntil:
	// when somebody resumes the tenant.
	Paused      bool      `json:"paused,omitempty"`
	PausedUntil time.Time `json:"paused_until,omitzero"`
}
