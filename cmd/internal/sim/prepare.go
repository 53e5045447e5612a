package sim

import (
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
	"github.com/sluice-queue/sluice/tenancy"
)

// prepare stores queues, tiers and tenants, as an operator would.
func (s *simulation) prepare() error {
	act := sluice.Act{By: "sim", Reason: "scenario"}
	for _, q := range s.scenario.Queues {
		settings := q.Settings
		// The history is dropped as soon as possible: the simulation does not read it.
		settings.KeepCompleted, settings.KeepCancelled, settings.KeepDead = time.Millisecond, time.Millisecond, time.Millisecond
		// The simulation itself refuses what does not fit: the store counts its waiting jobs by the real clock.
		settings.Fair = settings.Fair || settings.TenantMaxWaiting > 0
		settings.MaxWaiting, settings.TenantMaxWaiting = 0, 0
		if _, err := s.client.EnsureQueue(s.ctx, q.Name, settings, act); err != nil {
			return err
		}
		l := newQueue(q, s.scenario.standings(q))
		s.queues[q.Name], s.order = l, append(s.order, l)
	}
	for _, t := range s.scenario.Tiers {
		if _, err := tenancy.AddTier(s.ctx, s.store, t.Name, act); err != nil {
			return err
		}
	}
	for _, t := range s.scenario.Tenants {
		for _, name := range t.Names() {
			if t.Tier == "" {
				continue
			}
			if _, err := tenancy.SetTier(s.ctx, s.store, name, t.Tier, act); err != nil {
				return err
			}
		}
	}
	return s.saveLimits(act)
}

// saveLimits stores the limits of tiers and tenants, for every queue.
func (s *simulation) saveLimits(act sluice.Act) error {
	for _, t := range s.scenario.Tiers {
		if err := s.saveLimitsOf(tenancy.Limits{Tier: t.Name}, t.Limits, act); err != nil {
			return err
		}
	}
	for _, t := range s.scenario.Tenants {
		for _, name := range t.Names() {
			if err := s.saveLimitsOf(tenancy.Limits{Tenant: name}, t.Limits, act); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *simulation) saveLimitsOf(of tenancy.Limits, said Limits, act sluice.Act) error {
	if !said.set() {
		return nil
	}
	_, err := tenancy.ChangeLimits(s.ctx, s.store, of, act, func(l *tenancy.Limits) error {
		l.Concurrency, l.Rate, l.Burst, l.Weight = said.Concurrency, said.Rate, said.Burst, said.Weight
		return nil
	})
	return err
}

// standing is the limits of a tenant in a queue: the tenant's own, else its tier's, else the
// queue's.
type standing struct {
	tier        string
	weight      float64
	concurrency int         // 0: no limit
	rate        sluice.Rate // 0: no rate
	burst       float64
}

// standings returns the limits of each tenant in a queue. Tenants that are not listed have no tier.
func (s Scenario) standings(q Queue) func(tenant string) standing {
	listed := make(map[string]standing)
	for _, t := range s.Tenants {
		tier := Tier{}
		if i := slices.IndexFunc(s.Tiers, func(x Tier) bool { return x.Name == t.Tier }); i >= 0 {
			tier = s.Tiers[i]
		}
		for _, name := range t.Names() {
			listed[name] = q.standing(t.Limits, tier)
		}
	}
	other := q.standing(Limits{}, Tier{})
	return func(tenant string) standing {
		if st, ok := listed[tenant]; ok {
			return st
		}
		return other
	}
}

func (q Queue) standing(own Limits, tier Tier) standing {
	st := standing{tier: tier.Name, weight: float64(said(1, own.Weight, tier.Limits.Weight))}
	st.concurrency = said(q.Settings.TenantConcurrency, own.Concurrency, tier.Limits.Concurrency)
	st.rate = said(q.Settings.TenantRate, own.Rate, tier.Limits.Rate)
	st.burst = flow.Burst(sluice.Settings{Rate: st.rate, Burst: said(q.Settings.TenantBurst, own.Burst, tier.Limits.Burst)})
	return st
}

// said returns the first value that is set.
func said[T any](otherwise T, says ...*T) T {
	for _, s := range says {
		if s != nil {
			return *s
		}
	}
	return otherwise
}
