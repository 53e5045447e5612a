package event

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/tenancy"
)

const (
	// maxTenants is how many tenants of a queue are remembered. maxKnown is for how many tenants
	// the look-up is remembered, and maxLooks how many are looked up within a window.
	maxTenants = 100
	maxKnown   = 10_000
	maxLooks   = 5
	// knownFor is how long a look-up of a tenant counts.
	knownFor = 10 * time.Minute
	// lookInterval is how often Run checks whether it is time for a look-up.
	lookInterval = time.Second
)

// Tenants logs tenants at their concurrency limit, tenants that were deleted, and tenants that are
// not stored although tiers have limits. A claim only shows that jobs of some tenant wait. So
// Tenants looks up some of the tenants whose jobs were claimed here, once per window, beside the
// claims.
type Tenants struct {
	log   *Log
	store sluice.Store

	mu     sync.Mutex
	queues map[string]*tenants
	known  map[string]time.Time // when tenants were looked up
	told   map[string]bool      // tenants that are not stored, and were logged
}

// tenants are the tenants of a queue.
type tenants struct {
	queue sluice.Queue
	jobs  map[string]*sluice.Claim // one job of each
	fresh map[string]bool          // tenants that were not looked up yet
	full  bool                     // some jobs wait for others of their tenant or queue
	next  time.Time                // time of the next look-up
}

// NewTenants makes a Tenants that reads a store and writes to a log.
func NewTenants(log *Log, store sluice.Store) *Tenants {
	return &Tenants{log: log, store: store, queues: make(map[string]*tenants), known: make(map[string]time.Time), told: make(map[string]bool)}
}

// Saw records the result of a claim. A queue that does not serve tenants in turns costs nothing.
func (t *Tenants) Saw(q sluice.Queue, claimed sluice.Claimed) {
	if !q.ByTenant || len(claimed.Jobs) == 0 && !claimed.Full {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.queues[q.Name]
	if of == nil {
		of = &tenants{jobs: make(map[string]*sluice.Claim), fresh: make(map[string]bool)}
		t.queues[q.Name] = of
	}
	of.queue, of.full = q, of.full || claimed.Full
	for _, c := range claimed.Jobs {
		if c.Tenant == "" {
			continue
		}
		if _, there := of.jobs[c.Tenant]; !there && len(of.jobs) >= maxTenants {
			for other := range of.jobs { // any tenant
				delete(of.jobs, other)
				break
			}
		}
		of.jobs[c.Tenant] = c
		if time.Since(t.known[c.Tenant]) >= knownFor && len(of.fresh) < maxTenants {
			of.fresh[c.Tenant] = true
		}
	}
}

// Run looks tenants up regularly, until ctx ends.
func (t *Tenants) Run(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			t.look(ctx)
		}
	}
}

// look looks up tenants of the queues for which it is time. After an error, the next look-up tries
// again.
func (t *Tenants) look(ctx context.Context) {
	now := time.Now()
	var due []*tenants
	t.mu.Lock()
	for _, of := range t.queues {
		if now.Before(of.next) || !of.full && len(of.fresh) == 0 {
			continue
		}
		copied := &tenants{queue: of.queue, full: of.full, jobs: make(map[string]*sluice.Claim), fresh: make(map[string]bool)}
		for tenant, c := range of.jobs {
			copied.jobs[tenant] = c
		}
		for tenant := range of.fresh {
			copied.fresh[tenant] = true
		}
		of.next, of.full = now.Add(Window), false
		due = append(due, copied)
	}
	t.mu.Unlock()
	for _, of := range due {
		if of.full {
			t.lookForFull(ctx, of)
		}
		t.lookForUnknown(ctx, of)
	}
}

// lookForFull logs tenants at their concurrency limit.
func (t *Tenants) lookForFull(ctx context.Context, of *tenants) {
	var names []string
	for tenant := range of.jobs {
		names = append(names, tenant)
	}
	if len(names) == 0 {
		return
	}
	terms, err := tenancy.Given(t.store).EffectiveLimits(ctx, of.queue, names, of.queue.Now)
	if err != nil {
		return
	}
	looks := 0
	for _, tenant := range names {
		if terms[tenant].Concurrency == 0 || looks >= maxLooks {
			continue
		}
		looks++
		position, err := explain.Given(t.store).Position(ctx, of.jobs[tenant].ID)
		switch {
		case errors.Is(err, sluice.ErrNotFound), err == nil && position.Held == 0:
			t.forget(of.queue.Name, tenant)
		case err == nil && position.EffectiveLimits.Concurrency > 0 && position.Held >= position.EffectiveLimits.Concurrency:
			stored, _ := tenancy.Given(t.store).Tenant(ctx, tenant) // a tenant that is not stored has no tier
			t.log.Emit(TenantAtLimit, of.queue.Name, "tenant", tenant, "tier", stored.Tier, "in_flight", position.Held, "concurrency", position.EffectiveLimits.Concurrency)
		}
	}
}

// forget drops a tenant without jobs in flight.
func (t *Tenants) forget(queue, tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.queues[queue].jobs, tenant)
}

// lookForUnknown logs tenants that were deleted, and tenants that are not stored although tiers
// have limits.
func (t *Tenants) lookForUnknown(ctx context.Context, of *tenants) {
	if len(of.fresh) == 0 {
		return
	}
	tiers, err := tenancy.Given(t.store).TenantLimits(ctx, "", "")
	if err != nil {
		return
	}
	looks := 0
	for tenant := range of.fresh {
		if looks >= maxLooks {
			return
		}
		looks++
		missing, err := t.missing(ctx, tenant, len(tiers) > 0)
		if err != nil {
			return
		}
		if t.know(of.queue.Name, tenant, missing) && of.jobs[tenant] != nil {
			t.log.Emit(TenantUnknown, of.queue.Name, "job", of.jobs[tenant].ID, "tenant", tenant)
		}
	}
}

// missing reports whether a tenant should be stored and is not: it was deleted, or tiers have
// limits. If no tier has limits, most tenants are never stored and lack nothing.
func (t *Tenants) missing(ctx context.Context, tenant string, tiers bool) (bool, error) {
	_, err := tenancy.Given(t.store).Tenant(ctx, tenant)
	switch {
	case err == nil, !errors.Is(err, sluice.ErrNotFound):
		return false, err
	case tiers:
		return true, nil
	}
	last, err := t.store.Audit(ctx, sluice.AuditFilter{Object: audit.ObjectTenant, Name: tenant, Limit: 1})
	return len(last) > 0 && last[0].Event == audit.EventDelete, err
}

// know records a look-up, and reports whether to log the tenant: it is missing, and was not before.
func (t *Tenants) know(queue, tenant string, missing bool) (tell bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.queues[queue].fresh, tenant)
	if len(t.known) >= maxKnown {
		clear(t.known)
		clear(t.told)
	}
	t.known[tenant] = time.Now()
	if !missing {
		delete(t.told, tenant)
		return false
	}
	tell = !t.told[tenant]
	t.told[tenant] = true
	return tell
}
