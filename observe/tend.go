package observe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
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

func (s *store) Dispatches(ctx context.Context, filter sluice.DispatchFilter) ([]*sluice.Claim, error) {
	return do(ctx, s, "dispatches", filter.Queue, func(ctx context.Context) ([]*sluice.Claim, error) { return s.Store.Dispatches(ctx, filter) })
}

func (s *store) StrayRuns(ctx context.Context, queue string, after sluice.StrayRun, limit int) ([]sluice.StrayRun, error) {
	return do(ctx, s, "stray_runs", queue, func(ctx context.Context) ([]sluice.StrayRun, error) {
		return s.Store.StrayRuns(ctx, queue, after, limit)
	})
}

func (s *store) ForgetStrayRuns(ctx context.Context, runs []sluice.StrayRun) error {
	_, err := do(ctx, s, "forget_stray_runs", "", func(ctx context.Context) (none, error) { return none{}, s.Store.ForgetStrayRuns(ctx, runs) })
	return err
}

func (s *store) Mend(ctx context.Context, by string) (int, error) {
	return do(ctx, s, "mend", "", func(ctx context.Context) (int, error) { return s.Store.Mend(ctx, by) })
}

func (s *store) Prune(ctx context.Context, after string, limit int) (sluice.Pruned, error) {
	return do(ctx, s, "prune", "", func(ctx context.Context) (sluice.Pruned, error) { return s.Store.Prune(ctx, after, limit) })
}

func (s *store) CountWaves(ctx context.Context) (forecast.Count, error) {
	return do(ctx, s, "count_waves", "", s.forecasts.CountWaves)
}

func (s *store) Note(ctx context.Context, entries []sluice.AuditEntry) error {
	_, err := do(ctx, s, "note", "", func(ctx context.Context) (none, error) { return none{}, s.Store.Note(ctx, entries) })
	return err
}

func (s *store) Beat(ctx context.Context, holder sluice.Holder) error {
	_, err := do(ctx, s, "beat", "", func(ctx context.Context) (none, error) { return none{}, s.Store.Beat(ctx, holder) })
	return err
}

func (s *store) Leave(ctx context.Context, holderID string) error {
	_, err := do(ctx, s, "leave", "", func(ctx context.Context) (none, error) { return none{}, s.Store.Leave(ctx, holderID) })
	return err
}

func (s *store) Lead(ctx context.Context, holder string, tasks []string, lease time.Duration) ([]string, error) {
	return do(ctx, s, "lead", "", func(ctx context.Context) ([]string, error) { return s.Store.Lead(ctx, holder, tasks, lease) })
}
