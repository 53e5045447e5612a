package observe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/tenancy"
)

func (s *store) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	return do(ctx, s, "queues", "", func(ctx context.Context) ([]sluice.Queue, error) { return s.Store.Queues(ctx, filter) })
}

func (s *store) Now(ctx context.Context) (time.Time, error) {
	return do(ctx, s, "now", "", s.Store.Now)
}

func (s *store) Admit(ctx context.Context, queues []string, act sluice.Act) ([]error, error) {
	return do(ctx, s, "admit", "", func(ctx context.Context) ([]error, error) { return s.Store.Admit(ctx, queues, act) })
}

func (s *store) QueuePolicy(ctx context.Context) (admission.Policy, error) {
	return do(ctx, s, "queue_policy", "", s.policies.QueuePolicy)
}

func (s *store) WaitingJobs(ctx context.Context, queue, tenant string, limit int) (int, error) {
	return do(ctx, s, "waiting_jobs", queue, func(ctx context.Context) (int, error) {
		return s.pressures.WaitingJobs(ctx, queue, tenant, limit)
	})
}

func (s *store) Job(ctx context.Context, id sluice.ID) (sluice.Job, error) {
	return do(ctx, s, "job", "", func(ctx context.Context) (sluice.Job, error) { return s.Store.Job(ctx, id) })
}

func (s *store) Attempts(ctx context.Context, id sluice.ID) ([]sluice.Attempt, error) {
	return do(ctx, s, "attempts", "", func(ctx context.Context) ([]sluice.Attempt, error) { return s.Store.Attempts(ctx, id) })
}

func (s *store) Jobs(ctx context.Context, filter sluice.JobFilter) (sluice.Page, error) {
	return do(ctx, s, "jobs", filter.Queue, func(ctx context.Context) (sluice.Page, error) { return s.Store.Jobs(ctx, filter) })
}

func (s *store) Position(ctx context.Context, id sluice.ID) (explain.Position, error) {
	return do(ctx, s, "position", "", func(ctx context.Context) (explain.Position, error) { return s.explanations.Position(ctx, id) })
}

func (s *store) Await(ctx context.Context, ids []sluice.ID) error {
	_, err := do(ctx, s, "await", "", func(ctx context.Context) (struct{}, error) { return struct{}{}, s.awaits.Await(ctx, ids) })
	return err
}

func (s *store) Ended(ctx context.Context, ids []sluice.ID) ([]await.End, error) {
	return do(ctx, s, "ended", "", func(ctx context.Context) ([]await.End, error) { return s.awaits.Ended(ctx, ids) })
}

func (s *store) Depth(ctx context.Context, queue string, limit int) (sluice.Depth, error) {
	return do(ctx, s, "depth", queue, func(ctx context.Context) (sluice.Depth, error) { return s.Store.Depth(ctx, queue, limit) })
}

func (s *store) Flows(ctx context.Context, topTenants int) ([]sluice.Flow, error) {
	return do(ctx, s, "flows", "", func(ctx context.Context) ([]sluice.Flow, error) { return s.Store.Flows(ctx, topTenants) })
}

func (s *store) Waves(ctx context.Context, filter forecast.Filter) (forecast.Counts, error) {
	return do(ctx, s, "waves", "", func(ctx context.Context) (forecast.Counts, error) { return s.forecasts.Waves(ctx, filter) })
}

func (s *store) Audit(ctx context.Context, filter sluice.AuditFilter) ([]sluice.AuditEntry, error) {
	return do(ctx, s, "audit", "", func(ctx context.Context) ([]sluice.AuditEntry, error) { return s.Store.Audit(ctx, filter) })
}

func (s *store) Leaders(ctx context.Context) ([]presence.Leader, error) {
	return do(ctx, s, "leaders", "", s.processes.Leaders)
}

func (s *store) Holders(ctx context.Context) ([]presence.Holder, error) {
	return do(ctx, s, "holders", "", s.processes.Holders)
}

func (s *store) Instructions(ctx context.Context) ([]presence.Instruction, error) {
	return do(ctx, s, "instructions", "", s.processes.Instructions)
}

func (s *store) HeldJobs(ctx context.Context, holderIDs []string, limit int) ([]presence.HeldJob, error) {
	return do(ctx, s, "held_jobs", "", func(ctx context.Context) ([]presence.HeldJob, error) {
		return s.processes.HeldJobs(ctx, holderIDs, limit)
	})
}

func (s *store) Tenant(ctx context.Context, name string) (tenancy.Tenant, error) {
	return do(ctx, s, "tenant", "", func(ctx context.Context) (tenancy.Tenant, error) { return s.tenants.Tenant(ctx, name) })
}

func (s *store) Tenants(ctx context.Context, after string, limit int) ([]tenancy.Tenant, error) {
	return do(ctx, s, "tenants", "", func(ctx context.Context) ([]tenancy.Tenant, error) { return s.tenants.Tenants(ctx, after, limit) })
}

func (s *store) Tiers(ctx context.Context) ([]tenancy.Tier, error) {
	return do(ctx, s, "tiers", "", s.tenants.Tiers)
}

func (s *store) TenantLimits(ctx context.Context, tier, tenant string) ([]tenancy.Limits, error) {
	return do(ctx, s, "tenant_limits", "", func(ctx context.Context) ([]tenancy.Limits, error) {
		return s.tenants.TenantLimits(ctx, tier, tenant)
	})
}

func (s *store) EffectiveLimits(ctx context.Context, queue sluice.Queue, tenants []string, at time.Time) (map[string]sluice.EffectiveLimits, error) {
	return do(ctx, s, "terms", queue.Name, func(ctx context.Context) (map[string]sluice.EffectiveLimits, error) {
		return s.tenants.EffectiveLimits(ctx, queue, tenants, at)
	})
}
