package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
)

// Flows reports rates, limits and use of every stored queue.
func (s *Store) Flows(ctx context.Context, topTenants int) ([]sluice.Flow, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	out := make([]sluice.Flow, 0, len(s.queues))
	for name := range s.queues {
		out = append(out, s.flow(name, topTenants))
	}
	slices.SortFunc(out, func(a, b sluice.Flow) int { return cmp.Compare(a.Queue, b.Queue) })
	return out, nil
}

func (s *Store) flow(queue string, topTenants int) sluice.Flow {
	l, settings, now := s.backlog(queue), s.settings(queue), s.now()
	out := sluice.Flow{Queue: queue}
	if !settings.Rate.IsZero() {
		out.Tokens = l.bucket.Filled(settings, now).Tokens
	}
	for _, j := range s.jobs {
		switch {
		case j.Queue != queue || !j.live || j.BlockedBy.IsZero():
		case j.OrderKey != "":
			out.Ordered++
		default:
			out.After++
		}
	}
	for _, n := range l.tenantQueues {
		if n.Full {
			out.AtLimit++
		}
	}
	byTenant := s.byTenant(queue)
	for tenant, jobs := range l.held {
		if tenant == "" {
			continue
		}
		of := sluice.TenantFlow{Tenant: tenant, InFlight: jobs}
		if byTenant {
			of.EffectiveLimits = s.terms(queue, tenant, now)
		}
		out.Tenants = append(out.Tenants, of)
	}
	slices.SortFunc(out.Tenants, func(a, b sluice.TenantFlow) int {
		return cmp.Or(cmp.Compare(b.InFlight, a.InFlight), cmp.Compare(a.Tenant, b.Tenant))
	})
	out.Tenants = out.Tenants[:min(len(out.Tenants), topTenants)]
	return out
}
