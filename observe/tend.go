package observe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/presence"
)

func (s *store) Recover(ctx context.Context, queue string, limit int, by string) (sluice.Recovered, error) {
	c := &Call{Kind: KindStore, Name: "recover", Queue: queue}
	return observed(ctx, s.observers, c, func(ctx context.Context) (out sluice.Recovered, err error) {
		out, err = s.Store.Recover(ctx, queue, limit, by)
		c.recovered, c.Jobs = out, out.Requeued+out.Buried
		return out, err
	})
}

func (s *store) Expire(ctx context.Context, limit int, by string) (int, error) {
	c := &Call{Kind: KindStore, Name: "expire", event: sluice.EventCancel, reason: "expired"}
	return observed(ctx, s.observers, c, func(ctx context.Context) (count int, err error) {
		count, err = s.Store.Expire(ctx, limit, by)
		c.count, c.Jobs = count, count
		return count, err
	})
}

func (s *store) Dispatches(ctx context.Context, filter engine.DispatchFilter) ([]*sluice.Claim, error) {
	return do(ctx, s, "dispatches", filter.Queue, func(ctx context.Context) ([]*sluice.Claim, error) { return s.engineRuns.Dispatches(ctx, filter) })
}

func (s *store) OrphanRuns(ctx context.Context, queue string, after engine.OrphanRun, limit int) ([]engine.OrphanRun, error) {
	return do(ctx, s, "orphan_runs", queue, func(ctx context.Context) ([]engine.OrphanRun, error) {
		return s.engineRuns.OrphanRuns(ctx, queue, after, limit)
	})
}

func (s *store) ForgetOrphanRuns(ctx context.Context, runs []engine.OrphanRun) error {
	_, err := do(ctx, s, "forget_orphan_runs", "", func(ctx context.Context) (none, error) { return none{}, s.engineRuns.ForgetOrphanRuns(ctx, runs) })
	return err
}

func (s *store) Repair(ctx context.Context, by string) (int, error) {
	return do(ctx, s, "repair", "", func(ctx context.Context) (int, error) { return s.Store.Repair(ctx, by) })
}

func (s *store) Prune(ctx context.Context, after string, limit int) (sluice.Pruned, error) {
	return do(ctx, s, "prune", "", func(ctx context.Context) (sluice.Pruned, error) { return s.Store.Prune(ctx, after, limit) })
}

func (s *store) CountWaves(ctx context.Context) (forecast.Count, error) {
	return do(ctx, s, "count_waves", "", s.forecasts.CountWaves)
}

func (s *store) AppendAudit(ctx context.Context, entries []sluice.AuditEntry) error {
	_, err := do(ctx, s, "append_audit", "", func(ctx context.Context) (none, error) { return none{}, s.Store.AppendAudit(ctx, entries) })
	return err
}

func (s *store) Heartbeat(ctx context.Context, holder presence.Holder) (presence.Instruction, error) {
	return do(ctx, s, "heartbeat", "", func(ctx context.Context) (presence.Instruction, error) { return s.processes.Heartbeat(ctx, holder) })
}

func (s *store) SaveInstruction(ctx context.Context, instruction presence.Instruction, act sluice.Act) (presence.Instruction, error) {
	return do(ctx, s, "save_instruction", "", func(ctx context.Context) (presence.Instruction, error) {
		return s.processes.SaveInstruction(ctx, instruction, act)
	})
}

func (s *store) Deregister(ctx context.Context, holderID string) error {
	_, err := do(ctx, s, "deregister", "", func(ctx context.Context) (none, error) { return none{}, s.processes.Deregister(ctx, holderID) })
	return err
}

func (s *store) Elect(ctx context.Context, holder string, tasks []string, lease time.Duration) ([]string, error) {
	return do(ctx, s, "elect", "", func(ctx context.Context) ([]string, error) { return s.processes.Elect(ctx, holder, tasks, lease) })
}
