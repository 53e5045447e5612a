package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/tenancy"
)

// limitsOf identifies limits: of a tier or a tenant, in one queue or, without a queue, in all.
type limitsOf struct{ queue, tier, tenant string }

// TenantLimits lists the limits of a tier, of a tenant, or of every tier.
func (s *Store) TenantLimits(ctx context.Context, tier, tenant string) ([]tenancy.Limits, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []tenancy.Limits
	for of, limits := range s.limits {
		everyTier := tier == "" && tenant == "" && of.tier != ""
		if everyTier || of.tier == tier && of.tenant == tenant {
			out = append(out, limits)
		}
	}
	slices.SortFunc(out, func(a, b tenancy.Limits) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Queue, b.Queue))
	})
	return out, nil
}

// SaveTenantLimits stores limits.
func (s *Store) SaveTenantLimits(ctx context.Context, limits tenancy.Limits, act sluice.Act) (tenancy.Limits, error) {
	of := limitsOf{limits.Queue, limits.Tier, limits.Tenant}
	return save(ctx, s, saving.Limits, limits, act, in(s.limits, of).then(func(tenancy.Limits) { s.termsChanged() }))
}

// endTenantLimits ends pauses and limits of tenants whose time is over.
func (s *Store) endTenantLimits(by string) error {
	for of, was := range s.limits {
		next := saving.WithoutEnded(was, s.now())
		if next == was {
			continue
		}
		home := in(s.limits, of).then(func(tenancy.Limits) { s.termsChanged() })
		if _, err := put(s, saving.Limits, next, saving.EndedBy(by), home); err != nil {
			return err
		}
	}
	return nil
}

// termsChanged makes the next claims evaluate every tenant's limits again.
func (s *Store) termsChanged() {
	s.wakeAll()
	s.signal(sluice.Signal{})
}

// Delete deletes a tier or a tenant, and its limits.
func (s *Store) Delete(ctx context.Context, object sluice.Object, name string, act sluice.Act) error {
	return s.strike(ctx, object, name, act, func() error {
		var err error
		switch object {
		case audit.ObjectTier:
			if err = remove(s.tiers, name); err == nil {
				err = s.leaveTier(name, act)
			}
		case audit.ObjectTenant:
			err = remove(s.tenants, name)
		}
		if err != nil {
			return err
		}
		for of := range s.limits {
			if object == audit.ObjectTier && of.tier == name || object == audit.ObjectTenant && of.tenant == name {
				delete(s.limits, of)
			}
		}
		s.termsChanged()
		return nil
	})
}

// leaveTier takes the tenants of a deleted tier out of it. A new tier of that name begins without tenants.
func (s *Store) leaveTier(tier string, act sluice.Act) error {
	for _, was := range byName(s.tenants, func(t tenancy.Tenant) string { return t.Name }) {
		if was.Tier != tier {
			continue
		}
		next := was
		next.Tier = ""
		next = saving.Tenants.Next(next, &was, s.now(), act)
		entries, err := saving.Tenants.Entries(&was, next, act)
		if err != nil {
			return err
		}
		s.tenants[was.Name] = next
		for _, e := range entries {
			s.add(e)
		}
	}
	return nil
}
