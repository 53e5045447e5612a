package safe

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/tenancy"
)

func (s store) Enqueue(ctx context.Context, jobs []sluice.Insert) (_ []sluice.Receipt, err error) {
	defer s.caught(&err)
	return s.Store.Enqueue(ctx, jobs)
}

func (s store) Queues(ctx context.Context, filter sluice.QueueFilter) (_ []sluice.Queue, err error) {
	defer s.caught(&err)
	return s.Store.Queues(ctx, filter)
}

func (s store) Now(ctx context.Context) (_ time.Time, err error) {
	defer s.caught(&err)
	return s.Store.Now(ctx)
}

func (s store) WaitingJobs(ctx context.Context, queue, tenant string, limit int) (_ int, err error) {
	defer s.caught(&err)
	return s.pressures.WaitingJobs(ctx, queue, tenant, limit)
}

func (s store) AddStats(ctx context.Context, holder string, stats []stat.Stat) (err error) {
	defer s.caught(&err)
	return s.stats.AddStats(ctx, holder, stats)
}

func (s store) Stats(ctx context.Context, filter stat.Filter) (_ []stat.Stat, err error) {
	defer s.caught(&err)
	return s.stats.Stats(ctx, filter)
}

func (s store) FoldStats(ctx context.Context, limit int) (_ int, err error) {
	defer s.caught(&err)
	return s.stats.FoldStats(ctx, limit)
}

func (s store) AlertBook(ctx context.Context) (_ alert.Book, err error) {
	defer s.caught(&err)
	return s.alerts.AlertBook(ctx)
}

func (s store) SaveAlertRule(ctx context.Context, rule alert.Rule, act sluice.Act) (_ alert.Rule, err error) {
	defer s.caught(&err)
	return s.alerts.SaveAlertRule(ctx, rule, act)
}

func (s store) DeleteAlertRule(ctx context.Context, name, queue string, act sluice.Act) (err error) {
	defer s.caught(&err)
	return s.alerts.DeleteAlertRule(ctx, name, queue, act)
}

func (s store) SaveAlerts(ctx context.Context, round alert.Evaluation) (err error) {
	defer s.caught(&err)
	return s.alerts.SaveAlerts(ctx, round)
}

func (s store) SaveSilence(ctx context.Context, silence alert.Silence, act sluice.Act) (_ alert.Silence, err error) {
	defer s.caught(&err)
	return s.alerts.SaveSilence(ctx, silence, act)
}

func (s store) EndSilence(ctx context.Context, id sluice.ID, act sluice.Act) (err error) {
	defer s.caught(&err)
	return s.alerts.EndSilence(ctx, id, act)
}

func (s store) SaveReceiver(ctx context.Context, name string) (err error) {
	defer s.caught(&err)
	return s.alerts.SaveReceiver(ctx, name)
}

func (s store) NextDue(ctx context.Context, queues []string) (_ map[string]time.Duration, err error) {
	defer s.caught(&err)
	return s.Store.NextDue(ctx, queues)
}

func (s store) Claim(ctx context.Context, request sluice.ClaimRequest) (_ sluice.Claimed, err error) {
	defer s.caught(&err)
	return s.Store.Claim(ctx, request)
}

func (s store) Renew(ctx context.Context, renewals []sluice.Renewal) (_ []sluice.ID, err error) {
	defer s.caught(&err)
	return s.Store.Renew(ctx, renewals)
}

func (s store) SaveCheckpoint(ctx context.Context, id sluice.ID, token sluice.Token, checkpoint json.RawMessage) (err error) {
	defer s.caught(&err)
	return s.Store.SaveCheckpoint(ctx, id, token, checkpoint)
}

func (s store) RecordIntent(ctx context.Context, intents []engine.Intent) (_ []error, err error) {
	defer s.caught(&err)
	return s.engineRuns.RecordIntent(ctx, intents)
}

func (s store) Settle(ctx context.Context, settlements []sluice.Settlement) (_ []error, err error) {
	defer s.caught(&err)
	return s.Store.Settle(ctx, settlements)
}

func (s store) Cancel(ctx context.Context, ids []sluice.ID, act sluice.Act) (_ []error, err error) {
	defer s.caught(&err)
	return s.Store.Cancel(ctx, ids, act)
}

func (s store) Requeue(ctx context.Context, ids []sluice.ID, act sluice.Act) (_ []error, err error) {
	defer s.caught(&err)
	return s.Store.Requeue(ctx, ids, act)
}

func (s store) Resolve(ctx context.Context, ids []sluice.ID, outcome sluice.State, act sluice.Act) (_ []error, err error) {
	defer s.caught(&err)
	return s.Store.Resolve(ctx, ids, outcome, act)
}

func (s store) Terminate(ctx context.Context, ids []sluice.ID, act sluice.Act) (_ []error, err error) {
	defer s.caught(&err)
	return s.Store.Terminate(ctx, ids, act)
}

func (s store) Reschedule(ctx context.Context, ids []sluice.ID, dueAt time.Time, act sluice.Act) (_ []error, err error) {
	defer s.caught(&err)
	return s.Store.Reschedule(ctx, ids, dueAt, act)
}

func (s store) DeleteJobs(ctx context.Context, ids []sluice.ID, act sluice.Act) (_ []error, err error) {
	defer s.caught(&err)
	return s.Store.DeleteJobs(ctx, ids, act)
}

func (s store) Recover(ctx context.Context, queue string, limit int, by string) (_ sluice.Recovered, err error) {
	defer s.caught(&err)
	return s.Store.Recover(ctx, queue, limit, by)
}

func (s store) Dispatches(ctx context.Context, filter engine.DispatchFilter) (_ []*sluice.Claim, err error) {
	defer s.caught(&err)
	return s.engineRuns.Dispatches(ctx, filter)
}

func (s store) OrphanRuns(ctx context.Context, queue string, after engine.OrphanRun, limit int) (_ []engine.OrphanRun, err error) {
	defer s.caught(&err)
	return s.engineRuns.OrphanRuns(ctx, queue, after, limit)
}

func (s store) ForgetOrphanRuns(ctx context.Context, runs []engine.OrphanRun) (err error) {
	defer s.caught(&err)
	return s.engineRuns.ForgetOrphanRuns(ctx, runs)
}

func (s store) Expire(ctx context.Context, limit int, by string) (_ int, err error) {
	defer s.caught(&err)
	return s.Store.Expire(ctx, limit, by)
}

func (s store) Repair(ctx context.Context, by string) (_ int, err error) {
	defer s.caught(&err)
	return s.Store.Repair(ctx, by)
}

func (s store) Prune(ctx context.Context, after string, limit int) (_ sluice.Pruned, err error) {
	defer s.caught(&err)
	return s.Store.Prune(ctx, after, limit)
}

func (s store) CountWaves(ctx context.Context) (_ forecast.Count, err error) {
	defer s.caught(&err)
	return s.forecasts.CountWaves(ctx)
}

func (s store) Job(ctx context.Context, id sluice.ID) (_ sluice.Job, err error) {
	defer s.caught(&err)
	return s.Store.Job(ctx, id)
}

func (s store) Attempts(ctx context.Context, id sluice.ID) (_ []sluice.Attempt, err error) {
	defer s.caught(&err)
	return s.Store.Attempts(ctx, id)
}

func (s store) Jobs(ctx context.Context, filter sluice.JobFilter) (_ sluice.Page, err error) {
	defer s.caught(&err)
	return s.Store.Jobs(ctx, filter)
}

func (s store) Position(ctx context.Context, id sluice.ID) (_ explain.Position, err error) {
	defer s.caught(&err)
	return s.explanations.Position(ctx, id)
}

func (s store) Await(ctx context.Context, ids []sluice.ID) (err error) {
	defer s.caught(&err)
	return s.awaits.Await(ctx, ids)
}

func (s store) Ended(ctx context.Context, ids []sluice.ID) (_ []await.End, err error) {
	defer s.caught(&err)
	return s.awaits.Ended(ctx, ids)
}

func (s store) Flows(ctx context.Context, topTenants int) (_ []sluice.Flow, err error) {
	defer s.caught(&err)
	return s.Store.Flows(ctx, topTenants)
}

func (s store) Depth(ctx context.Context, queue string, limit int) (_ sluice.Depth, err error) {
	defer s.caught(&err)
	return s.Store.Depth(ctx, queue, limit)
}

func (s store) Waves(ctx context.Context, filter forecast.Filter) (_ forecast.Counts, err error) {
	defer s.caught(&err)
	return s.forecasts.Waves(ctx, filter)
}

func (s store) Audit(ctx context.Context, filter sluice.AuditFilter) (_ []sluice.AuditEntry, err error) {
	defer s.caught(&err)
	return s.Store.Audit(ctx, filter)
}

func (s store) AppendAudit(ctx context.Context, entries []sluice.AuditEntry) (err error) {
	defer s.caught(&err)
	return s.Store.AppendAudit(ctx, entries)
}

func (s store) SaveQueue(ctx context.Context, queue sluice.Queue, act sluice.Act) (_ sluice.Queue, err error) {
	defer s.caught(&err)
	return s.Store.SaveQueue(ctx, queue, act)
}

func (s store) RecordQueueChange(ctx context.Context, queue sluice.Queue, act sluice.Act) (_ sluice.Queue, err error) {
	defer s.caught(&err)
	return s.Store.RecordQueueChange(ctx, queue, act)
}

func (s store) DeleteQueue(ctx context.Context, name string, act sluice.Act) (err error) {
	defer s.caught(&err)
	return s.Store.DeleteQueue(ctx, name, act)
}

func (s store) QueuePolicy(ctx context.Context) (_ admission.Policy, err error) {
	defer s.caught(&err)
	return s.policies.QueuePolicy(ctx)
}

func (s store) SaveQueuePolicy(ctx context.Context, policy admission.Policy, act sluice.Act) (_ admission.Policy, err error) {
	defer s.caught(&err)
	return s.policies.SaveQueuePolicy(ctx, policy, act)
}

func (s store) Admit(ctx context.Context, queues []string, act sluice.Act) (_ []error, err error) {
	defer s.caught(&err)
	return s.Store.Admit(ctx, queues, act)
}

func (s store) Tenant(ctx context.Context, name string) (_ tenancy.Tenant, err error) {
	defer s.caught(&err)
	return s.tenants.Tenant(ctx, name)
}

func (s store) Tenants(ctx context.Context, after string, limit int) (_ []tenancy.Tenant, err error) {
	defer s.caught(&err)
	return s.tenants.Tenants(ctx, after, limit)
}

func (s store) SaveTenant(ctx context.Context, tenant tenancy.Tenant, act sluice.Act) (_ tenancy.Tenant, err error) {
	defer s.caught(&err)
	return s.tenants.SaveTenant(ctx, tenant, act)
}

func (s store) Tiers(ctx context.Context) (_ []tenancy.Tier, err error) {
	defer s.caught(&err)
	return s.tenants.Tiers(ctx)
}

func (s store) SaveTier(ctx context.Context, tier tenancy.Tier, act sluice.Act) (_ tenancy.Tier, err error) {
	defer s.caught(&err)
	return s.tenants.SaveTier(ctx, tier, act)
}

func (s store) TenantLimits(ctx context.Context, tier, tenant string) (_ []tenancy.Limits, err error) {
	defer s.caught(&err)
	return s.tenants.TenantLimits(ctx, tier, tenant)
}

func (s store) EffectiveLimits(ctx context.Context, queue sluice.Queue, tenants []string, at time.Time) (_ map[string]sluice.EffectiveLimits, err error) {
	defer s.caught(&err)
	return s.tenants.EffectiveLimits(ctx, queue, tenants, at)
}

func (s store) SaveTenantLimits(ctx context.Context, limits tenancy.Limits, act sluice.Act) (_ tenancy.Limits, err error) {
	defer s.caught(&err)
	return s.tenants.SaveTenantLimits(ctx, limits, act)
}

func (s store) Delete(ctx context.Context, object sluice.Object, name string, act sluice.Act) (err error) {
	defer s.caught(&err)
	return s.tenants.Delete(ctx, object, name, act)
}

func (s store) SaveOperation(ctx context.Context, op operation.Operation, act sluice.Act) (_ operation.Operation, err error) {
	defer s.caught(&err)
	return s.operations.SaveOperation(ctx, op, act)
}

func (s store) Operation(ctx context.Context, id sluice.ID) (_ operation.Operation, err error) {
	defer s.caught(&err)
	return s.operations.Operation(ctx, id)
}

func (s store) Operations(ctx context.Context, filter operation.Filter) (_ []operation.Operation, err error) {
	defer s.caught(&err)
	return s.operations.Operations(ctx, filter)
}

func (s store) Heartbeat(ctx context.Context, holder presence.Holder) (_ presence.Instruction, err error) {
	defer s.caught(&err)
	return s.processes.Heartbeat(ctx, holder)
}

func (s store) Deregister(ctx context.Context, holderID string) (err error) {
	defer s.caught(&err)
	return s.processes.Deregister(ctx, holderID)
}

func (s store) Holders(ctx context.Context) (_ []presence.Holder, err error) {
	defer s.caught(&err)
	return s.processes.Holders(ctx)
}

func (s store) Elect(ctx context.Context, holder string, tasks []string, lease time.Duration) (_ []string, err error) {
	defer s.caught(&err)
	return s.processes.Elect(ctx, holder, tasks, lease)
}

func (s store) Leaders(ctx context.Context) (_ []presence.Leader, err error) {
	defer s.caught(&err)
	return s.processes.Leaders(ctx)
}

func (s store) SaveInstruction(ctx context.Context, instruction presence.Instruction, act sluice.Act) (_ presence.Instruction, err error) {
	defer s.caught(&err)
	return s.processes.SaveInstruction(ctx, instruction, act)
}

func (s store) Instructions(ctx context.Context) (_ []presence.Instruction, err error) {
	defer s.caught(&err)
	return s.processes.Instructions(ctx)
}

func (s store) HeldJobs(ctx context.Context, holderIDs []string, limit int) (_ []presence.HeldJob, err error) {
	defer s.caught(&err)
	return s.processes.HeldJobs(ctx, holderIDs, limit)
}

func (s store) Watch(ctx context.Context, signal func(sluice.Signal)) (err error) {
	defer s.caught(&err)
	return s.Store.Watch(ctx, signal)
}

func (s store) Close() (err error) {
	defer s.caught(&err)
	return s.Store.Close()
}

func (s store) Hold(ctx context.Context, ids []sluice.ID, act sluice.Act) (_ []error, err error) {
	defer s.caught(&err)
	return s.holds.Hold(ctx, ids, act)
}

func (s store) Release(ctx context.Context, ids []sluice.ID, act sluice.Act) (_ []error, err error) {
	defer s.caught(&err)
	return s.holds.Release(ctx, ids, act)
}

func (s store) Holds(ctx context.Context, filter hold.Filter) (_ []hold.Held, err error) {
	defer s.caught(&err)
	return s.holds.Holds(ctx, filter)
}

func (s store) EditJob(ctx context.Context, e edit.Edit, act sluice.Act) (err error) {
	defer s.caught(&err)
	return s.edits.EditJob(ctx, e, act)
}
