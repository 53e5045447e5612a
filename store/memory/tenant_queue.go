package memory

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/tenancy"
)

// tenantQueue is the waiting jobs of one tenant, in a queue that serves its tenants in turns.
type tenantQueue struct {
	flow.TenantQueue
	waiting
}

// addToTenantQueue puts a job where claims find it: with its queue, or in its tenant queue.
func (s *Store) addToTenantQueue(j *job) {
	l := s.backlog(j.Queue)
	if !l.byTenant {
		l.waiting[j.Priority].add(j.DueAt, j.ID)
		return
	}
	n := l.tenantQueue(j.Tenant)
	n.waiting[j.Priority].add(j.DueAt, j.ID)
	n.Jobs |= 1 << j.Priority
	n.Arrive(j.DueAt, s.now(), l.mark)
}

func (l *backlog) tenantQueue(tenant string) *tenantQueue {
	n := l.tenantQueues[tenant]
	if n == nil {
		n = &tenantQueue{TenantQueue: flow.TenantQueue{Tenant: tenant}}
		l.tenantQueues[tenant] = n
	}
	return n
}

// land records that a job of a tenant is no longer in flight.
func (l *backlog) land(tenant string) {
	if l.held[tenant]--; l.held[tenant] == 0 {
		delete(l.held, tenant)
	}
	if n := l.tenantQueues[tenant]; n != nil && n.Full {
		n.Wake(l.mark)
	}
}

// full reports whether a tenant's jobs wait until another job of the tenant ends.
func (l *backlog) full() bool {
	for _, n := range l.tenantQueues {
		if n.Full {
			return true
		}
	}
	return false
}

// wakesAt returns when a claim may next find jobs in a tenant queue. The zero time is now.
func (l *backlog) wakesAt() (at time.Time, some bool) {
	for _, n := range l.tenantQueues {
		if n.Active {
			return time.Time{}, true
		}
		if !n.WakeAt.IsZero() && (!some || n.WakeAt.Before(at)) {
			at, some = n.WakeAt, true
		}
	}
	return at, some
}

// wakeAll makes the next claims evaluate every tenant queue, because its limits may have changed.
func (s *Store) wakeAll() {
	for _, l := range s.backlogs {
		l.wakeAll()
	}
}

func (l *backlog) wakeAll() {
	for _, n := range l.tenantQueues {
		n.Wake(l.mark)
	}
}

// sortOut moves the jobs of a queue into tenant queues by tenant, or back, after the settings or limits
// have changed this.
func (s *Store) sortOut(l *backlog, queue string) {
	byTenant := s.byTenant(queue)
	if byTenant == l.byTenant {
		return
	}
	l.byTenant, l.waiting, l.tenantQueues = byTenant, waiting{}, make(map[string]*tenantQueue)
	for _, j := range s.jobs {
		if j.live && j.Queue == queue && j.State == sluice.StateQueued && j.BlockedBy.IsZero() {
			s.addToTenantQueue(j)
		}
	}
}

func (s *Store) byTenant(queue string) bool {
	if flow.ByTenant(s.settings(queue)) {
		return true
	}
	for _, limits := range s.limits {
		if limits.Say() && (limits.Queue == "" || limits.Queue == queue) {
			return true
		}
	}
	return false
}

// terms returns a tenant's limits in effect.
func (s *Store) terms(queue, tenant string, now time.Time) sluice.EffectiveLimits {
	return s.termsBy(s.settings(queue), queue, tenant, now)
}

func (s *Store) termsBy(settings sluice.Settings, queue, tenant string, now time.Time) sluice.EffectiveLimits {
	nearest := []tenancy.Limits{s.limits[limitsOf{queue, "", tenant}], s.limits[limitsOf{"", "", tenant}]}
	if tier := s.tenants[tenant].Tier; tier != "" {
		nearest = append(nearest, s.limits[limitsOf{queue, tier, ""}], s.limits[limitsOf{"", tier, ""}])
	}
	return flow.EffectiveLimitsOf(tenant, settings, now, nearest...)
}

// EffectiveLimits returns the limits in effect of tenants.
func (s *Store) EffectiveLimits(ctx context.Context, queue sluice.Queue, tenants []string, at time.Time) (map[string]sluice.EffectiveLimits, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	terms := make(map[string]sluice.EffectiveLimits, len(tenants))
	for _, tenant := range tenants {
		terms[tenant] = s.termsBy(queue.Settings, queue.Name, tenant, at)
	}
	return terms, nil
}

// claimByTenant claims up to limit jobs of a queue, its tenants in turns.
func (s *Store) claimByTenant(l *backlog, request sluice.ClaimRequest, limit int, now time.Time) ([]*sluice.Claim, error) {
	for _, n := range l.tenantQueues {
		if !n.Active && !n.WakeAt.IsZero() && !n.WakeAt.After(now.Add(request.ClaimAhead)) {
			n.Wake(l.mark)
		}
	}
	serving := &serving{store: s, backlog: l, request: request, now: now}
	var err error
	l.mark, err = flow.Serve(limit, l.mark, now, request.ClaimAhead, &flow.Width{}, serving)
	return serving.jobs, err
}

// pruneTenantQueues deletes tenant queues that have no jobs and no state worth keeping.
func (s *Store) pruneTenantQueues() {
	now := s.now()
	s.pruneLimitKeys(now)
	for queue, l := range s.backlogs {
		for tenant, n := range l.tenantQueues {
			if _, waits := s.firstDue(&n.waiting); waits || l.held[tenant] > 0 {
				continue
			}
			if n.EffectiveLimits = s.terms(queue, tenant, now); n.Spare(l.mark, true, now) {
				delete(l.tenantQueues, tenant)
			}
		}
	}
}

// serving is one claim from the tenant queues of a queue. [flow.Serve] calls its methods.
type serving struct {
	store   *Store
	backlog *backlog
	request sluice.ClaimRequest
	now     time.Time
	jobs    []*sluice.Claim
}

// First returns the active tenant queues in the order of their turns.
func (v *serving) First(_ flow.LowWater, limit int) ([]*flow.TenantQueue, error) {
	var active []*flow.TenantQueue
	for _, n := range v.backlog.tenantQueues {
		if n.Active {
			active = append(active, &n.TenantQueue)
		}
	}
	slices.SortFunc(active, flow.InTurns)
	active = active[:min(limit, len(active))]
	for _, n := range active {
		n.EffectiveLimits, n.Held = v.store.terms(v.request.Queue, n.Tenant, v.now), v.backlog.held[n.Tenant]
	}
	return active, nil
}

// Claim claims each tenant queue's share.
func (v *serving) Claim(lines []*flow.TenantQueue) error {
	for _, n := range lines {
		if v.backlog.stopped != nil { // nothing overtakes a job that a limit by cost keeps out
			break
		}
		got := v.store.take(&v.backlog.tenantQueues[n.Tenant].waiting, v.request, n.Share, v.now)
		n.Got = len(got)
		v.jobs = append(v.jobs, got...)
	}
	return nil
}

// Look reads which jobs remain in tenant queues.
func (v *serving) Look(lines []*flow.TenantQueue) error {
	for _, n := range lines {
		n.Jobs, n.NextDue = 0, time.Time{}
		w := &v.backlog.tenantQueues[n.Tenant].waiting
		for priority := range w {
			if _, waits := v.store.firstOf(&w[priority]); waits {
				n.Jobs |= 1 << priority
			}
		}
		n.NextDue, _ = v.store.firstDue(w)
	}
	return nil
}

// Keep does nothing: the tenant queues belong to the store, and are already changed.
func (v *serving) Keep([]*flow.TenantQueue) error { return nil }
