package observe

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/tenancy"
)

func (s *store) SaveQueue(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	return do(ctx, s, "save_queue", queue.Name, func(ctx context.Context) (sluice.Queue, error) { return s.Store.SaveQueue(ctx, queue, act) })
}

func (s *store) RecordQueueChange(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	return do(ctx, s, "record_queue_change", queue.Name, func(ctx context.Context) (sluice.Queue, error) { return s.Store.RecordQueueChange(ctx, queue, act) })
}

func (s *store) DeleteQueue(ctx context.Context, name string, act sluice.Act) error {
	_, err := do(ctx, s, "delete_queue", name, func(ctx context.Context) (none, error) {
		return none{}, s.Store.DeleteQueue(ctx, name, act)
	})
	return err
}

func (s *store) SaveQueuePolicy(ctx context.Context, policy admission.Policy, act sluice.Act) (admission.Policy, error) {
	return do(ctx, s, "save_queue_policy", "", func(ctx context.Context) (admission.Policy, error) {
		return s.policies.SaveQueuePolicy(ctx, policy, act)
	})
}

func (s *store) SaveTenant(ctx context.Context, tenant tenancy.Tenant, act sluice.Act) (tenancy.Tenant, error) {
	return do(ctx, s, "save_tenant", "", func(ctx context.Context) (tenancy.Tenant, error) { return s.tenants.SaveTenant(ctx, tenant, act) })
}

func (s *store) SaveTier(ctx context.Context, tier tenancy.Tier, act sluice.Act) (tenancy.Tier, error) {
	return do(ctx, s, "save_tier", "", func(ctx context.Context) (tenancy.Tier, error) { return s.tenants.SaveTier(ctx, tier, act) })
}

func (s *store) SaveTenantLimits(ctx context.Context, limits tenancy.Limits, act sluice.Act) (tenancy.Limits, error) {
	return do(ctx, s, "save_tenant_limits", limits.Queue, func(ctx context.Context) (tenancy.Limits, error) {
		return s.tenants.SaveTenantLimits(ctx, limits, act)
	})
}

func (s *store) Delete(ctx context.Context, object sluice.Object, name string, act sluice.Act) error {
	_, err := do(ctx, s, "delete", "", func(ctx context.Context) (none, error) { return none{}, s.tenants.Delete(ctx, object, name, act) })
	return err
}
