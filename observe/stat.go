package observe

import (
	"context"

	"github.com/sluice-queue/sluice/stat"
)

func (s *store) AddStats(ctx context.Context, holder string, stats []stat.Stat) error {
	_, err := do(ctx, s, "add_stats", "", func(ctx context.Context) (none, error) { return none{}, s.stats.AddStats(ctx, holder, stats) })
	return err
}

func (s *store) Stats(ctx context.Context, filter stat.Filter) ([]stat.Stat, error) {
	queue := ""
	if len(filter.Queues) == 1 {
		queue = filter.Queues[0]
	}
	return do(ctx, s, "stats", queue, func(ctx context.Context) ([]stat.Stat, error) { return s.stats.Stats(ctx, filter) })
}

func (s *store) FoldStats(ctx context.Context, limit int) (int, error) {
	return do(ctx, s, "fold_stats", "", func(ctx context.Context) (int, error) { return s.stats.FoldStats(ctx, limit) })
}
