package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/group"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/tenancy"
)

// Queues lists queues with their settings, by name.
func (s *Store) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	queues := slices.DeleteFunc(s.queuesByName(), func(q sluice.Queue) bool {
		return q.Name <= filter.After || len(filter.Names) > 0 && !slices.Contains(filter.Names, q.Name) ||
			len(filter.Names) == 0 && !filter.Groups && sluice.IsGroup(q.Name) ||
			len(filter.Engines) > 0 && !slices.Contains(filter.Engines, q.Settings.Engine) ||
			filter.Engined && q.Settings.Engine == "" && !s.backlog(q.Name).atEngine()
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
func (l *backlog) atEngine() bool {
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
	act = saving.Named(act)
	at := s.queueHome(queue.Name)
	if sluice.IsGroup(queue.Name) {
		at = at.after(func(next sluice.Queue) error { return s.followGroup(next, act) })
	}
	return put(s, saving.Queues, queue, act, at)
}

// followGroup changes the queues of a group before the group itself is stored.
func (s *Store) followGroup(changed sluice.Queue, act sluice.Act) error {
	stored := s.queuesByName()
	follow, err := group.Follow(changed.Name, group.Before(changed.Name, stored), changed.Settings, stored)
	if err != nil {
		return err
	}
	for _, q := range follow {
		if _, err := put(s, saving.Queues, q, group.Act(changed.Name, act), s.queueHome(q.Name)); err != nil {
			return fmt.Errorf("queue %q of %s: %w", q.Name, changed.Name, err)
		}
	}
	return nil
}

func (s *Store) queuesByName() []sluice.Queue {
	return byName(s.queues, func(q sluice.Queue) string { return q.Name })
}

// queueHome returns where the store keeps a queue. Changed settings wake its claims.
func (s *Store) queueHome(name string) home[sluice.Queue] {
	return in(s.queues, name).then(func(sluice.Queue) {
		s.backlog(name).wakeAll()
		s.signal(sluice.Signal{Queue: name})
	})
}

// RecordQueueChange audits settings that were changed by plain SQL.
func (s *Store) RecordQueueChange(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	return save(ctx, s, saving.QueueRecords, queue, act, s.queueHome(queue.Name))
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
	return save(ctx, s, saving.Tenants, tenant, act, in(s.tenants, tenant.Name).then(func(tenancy.Tenant) { s.termsChanged() }))
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
	return save(ctx, s, saving.Tiers, tier, act, in(s.tiers, tier.Name))
}
