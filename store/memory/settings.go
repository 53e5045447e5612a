package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/lead"
	"github.com/sluice-queue/sluice/internal/storing"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/tenancy"
)

// holderMemory is how long the store remembers a holder after its last heartbeat.
const holderMemory = time.Hour

// Queues lists queues with their settings, by name.
func (s *Store) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	queues := slices.DeleteFunc(byName(s.queues, func(q sluice.Queue) string { return q.Name }), func(q sluice.Queue) bool {
		return q.Name <= filter.After || len(filter.Names) > 0 && !slices.Contains(filter.Names, q.Name) ||
			len(filter.Engines) > 0 && !slices.Contains(filter.Engines, q.Settings.Engine) ||
			filter.Engined && q.Settings.Engine == "" && !s.lane(q.Name).atEngine()
	})
	if filter.Limit > 0 {
		queues = queues[:min(filter.Limit, len(queues))]
	}
	for i := range queues {
		queues[i].ByTenant = s.byTenant(queues[i].Name)
		queues[i].Now = s.now()
	}
	return queues, nil
}

// atEngine reports whether jobs of a queue are at an engine.
func (l *lane) atEngine() bool {
	for _, in := range []map[sluice.ID]*job{l.claimed, l.dispatched} {
		for _, j := range in {
			if j.Engine != "" {
				return true
			}
		}
	}
	return false
}

// Now reads the store's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return time.Time{}, err
	}
	defer leave()
	return s.now(), nil
}

func byName[T any](all map[string]T, name func(T) string) []T {
	return slices.SortedFunc(maps.Values(all), func(a, b T) int { return cmp.Compare(name(a), name(b)) })
}

// SaveQueue stores a queue's settings.
func (s *Store) SaveQueue(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.Queue{}, err
	}
	defer leave()
	if queue.Version == 0 {
		if err := s.admit(queue.Name); err != nil {
			return sluice.Queue{}, err
		}
	}
	s.signal(sluice.Signal{Queue: queue.Name})
	return s.saveQueue(queue, act)
}

func (s *Store) saveQueue(queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	old, known := s.queues[queue.Name]
	if old.Version != queue.Version {
		return sluice.Queue{}, sluice.ErrConflict
	}
	var stored *sluice.Queue
	if known {
		stored = &old
	}
	next := queue.Stored(s.now(), act)
	return next, s.putQueue(next, storing.QueueChanges(stored, next, act))
}

// putQueue stores the next version of a queue, and its audit entries.
func (s *Store) putQueue(next sluice.Queue, tellings []storing.Change) error {
	for _, t := range tellings {
		if err := s.tellChange(audit.ObjectQueue, next.Name, t.Before, t.After, t.Act); err != nil {
			return err
		}
	}
	s.queues[next.Name] = next
	s.lane(next.Name).wakeAll()
	return nil
}

// RecordQueueChange audits settings that were changed by plain SQL.
func (s *Store) RecordQueueChange(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return sluice.Queue{}, err
	}
	defer leave()
	stored, known := s.queues[queue.Name]
	if !known || stored.Version != queue.Version {
		return sluice.Queue{}, sluice.ErrConflict
	}
	telling := storing.Change{Before: stored.ToldForAudit(), After: queue.ForAudit(), Act: act}
	next := queue.Stored(s.now(), act)
	next.Wrong = stored.Wrong // stored values that make no sense still make none
	return next, s.putQueue(next, []storing.Change{telling})
}

// Tenant returns a stored tenant.
func (s *Store) Tenant(ctx context.Context, name string) (tenancy.Tenant, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return tenancy.Tenant{}, err
	}
	defer leave()
	tenant, known := s.tenants[name]
	if !known {
		return tenancy.Tenant{}, sluice.ErrNotFound
	}
	return tenant, nil
}

// Tenants lists stored tenants by name.
func (s *Store) Tenants(ctx context.Context, after string, limit int) ([]tenancy.Tenant, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	all := byName(s.tenants, func(t tenancy.Tenant) string { return t.Name })
	from, _ := slices.BinarySearchFunc(all, after+"\x00", func(t tenancy.Tenant, name string) int { return cmp.Compare(t.Name, name) })
	return all[from:min(from+limit, len(all))], nil
}

// SaveTenant stores a tenant.
func (s *Store) SaveTenant(ctx context.Context, tenant tenancy.Tenant, act sluice.Act) (tenancy.Tenant, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return tenancy.Tenant{}, err
	}
	defer leave()
	old, known := s.tenants[tenant.Name]
	if old.Version != tenant.Version {
		return tenancy.Tenant{}, sluice.ErrConflict
	}
	var before any
	if known {
		before = map[string]string{"tier": old.Tier}
	}
	if err := s.tellChange(audit.ObjectTenant, tenant.Name, before, map[string]string{"tier": tenant.Tier}, act); err != nil {
		return tenancy.Tenant{}, err
	}
	tenant.Version++
	tenant.ChangedAt, tenant.ChangedBy, tenant.Reason = s.now(), act.By, act.Reason
	s.tenants[tenant.Name] = tenant
	s.termsChanged()
	return tenant, nil
}

// Tiers lists the tiers by name.
func (s *Store) Tiers(ctx context.Context) ([]tenancy.Tier, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return byName(s.tiers, func(t tenancy.Tier) string { return t.Name }), nil
}

// SaveTier stores a tier.
func (s *Store) SaveTier(ctx context.Context, tier tenancy.Tier, act sluice.Act) (tenancy.Tier, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return tenancy.Tier{}, err
	}
	defer leave()
	if s.tiers[tier.Name].Version != tier.Version {
		return tenancy.Tier{}, sluice.ErrConflict
	}
	if err := s.tellChange(audit.ObjectTier, tier.Name, nil, map[string]string{}, act); err != nil {
		return tenancy.Tier{}, err
	}
	tier.Version++
	tier.ChangedAt, tier.ChangedBy, tier.Reason = s.now(), act.By, act.Reason
	s.tiers[tier.Name] = tier
	return tier, nil
}

// Beat stores a holder's heartbeat.
func (s *Store) Heartbeat(ctx context.Context, holder presence.Holder) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	holder.Seen, holder.Conditions, holder.Counts = s.now(), slices.Clone(holder.Conditions), s.tally != nil
	s.holders[holder.ID] = holder
	return nil
}

// Deregister removes a holder that ends, and releases its tasks.
func (s *Store) Deregister(ctx context.Context, holderID string) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	delete(s.holders, holderID)
	maps.DeleteFunc(s.leads, func(_ string, l presence.Leader) bool { return l.Holder == holderID })
	return nil
}

// Holders lists the processes with a heartbeat in the last hour.
func (s *Store) Holders(ctx context.Context) ([]presence.Holder, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for id, h := range s.holders {
		if h.Seen.Before(s.now().Add(-holderMemory)) {
			delete(s.holders, id)
		}
	}
	return byName(s.holders, func(h presence.Holder) string { return h.ID }), nil
}

// ClaimAhead elects the holder for tasks that are free or already its own.
func (s *Store) Elect(ctx context.Context, holder string, tasks []string, lease time.Duration) ([]string, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []string
	for _, task := range tasks {
		next, leads, changed := lead.Take(task, s.leads[task], holder, s.now(), lease)
		if changed {
			s.leads[task] = next
		}
		if leads {
			out = append(out, task)
		}
	}
	return out, nil
}

// Leaders lists the leader of each task.
func (s *Store) Leaders(ctx context.Context) ([]presence.Leader, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := byName(s.leads, func(l presence.Leader) string { return l.Task })
	for i := range out {
		out[i].Held = out[i].Until.After(s.now())
	}
	return out, nil
}
