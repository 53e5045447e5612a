package observe

import (
	"context"

	"github.com/sluice-queue/sluice"
)

func (s *store) AddStats(ctx context.Context, holder string, stats []sluice.Stat) error {
	_, err := do(ctx, s, "add_stats", "", func(ctx context.Context) (none, error) { return none{}, s.Store.AddStats(ctx, holder, stats) })
	return err
}

func (s *store) Stats(ctx context.Context, filter sluice.StatFilter) ([]sluice.Stat, error) {
	queue := ""
	if len(filter.Queues) == 1 {
		queue = filter.Queues[0]
	}
	return do(ctx, s, "stats", queue, func(ctx context.Context) ([]sluice.Stat, error) { return s.Store.Stats(ctx, filter) })
}

func (s *store) FoldStats(ctx context.Context, limit int) (int, error) {
	return do(ctx, s, "fold_stats", "", func(ctx context.Context) (int, error) { return s.Store.FoldStats(ctx, limit) })
}
