package sluice

import (
	"context"
	"time"
)

// Flow is what lets the jobs of a queue through at this moment, and what holds them back. Finding it reads a bounded
// number of rows.
type Flow struct {
	Queue string `json:"queue"`
	// Tokens are those that the queue's rate has now, which may be negative; 0 where there is no rate.
	Tokens float64 `json:"tokens"`
	// Ordered jobs wait for an earlier one of their order key, After for another that they are to run after: as many as
	// there are among DepthLimit blocked jobs of all queues. One that may wait for both counts as ordered.
	Ordered int `json:"ordered"`
	After   int `json:"after"`
	// AtCapacity counts the tenants that have as many jobs in flight as they may, as claims last found them, among
	// DepthLimit tenants.
	AtCapacity int `json:"at_capacity"`
	// Tenants are those with the most jobs in flight, the one with the most first.
	Tenants []TenantFlow `json:"tenants,omitempty"`
}

// TenantFlow is what a tenant has in flight in a queue.
type TenantFlow struct {
	Tenant string `json:"tenant"`
	// InFlight jobs are claimed or dispatched, or have ended while a run of theirs may be open.
	InFlight int `json:"in_flight"`
	// EffectiveLimits are the limits that count for it; the zero value where the queue does not serve its tenants in turns.
	EffectiveLimits EffectiveLimits `json:"limits"`
}

// Flows tells it of every queue that has a limit or blocked jobs, with at most topTenants tenants of each.
func (c *Client) Flows(ctx context.Context, topTenants int) ([]Flow, error) {
	return c.store.Flows(ctx, topTenants)
}

// EffectiveLimits are the limits that count for a tenant in a queue, whoever said them.
type EffectiveLimits struct {
	// Capacity is how many jobs may be in flight at the same time; 0: no limit.
	Capacity int `json:"capacity,omitempty"`
	// Rate and Burst are how many may be claimed per time, and at once after a lull; 0: no limit.
	Rate  Rate `json:"rate,omitzero"`
	Burst int  `json:"burst,omitempty"`
	// Weight is the tenant's share beside the others that have work.
	Weight int `json:"weight"`
	// Until is when others count; zero: never.
	Until time.Time `json:"until,omitzero"`
	// Paused tenants are open again at PausedUntil, if that is set.
	Paused      bool      `json:"paused,omitempty"`
	PausedUntil time.Time `json:"paused_until,omitzero"`
}
