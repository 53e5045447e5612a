package observe

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/hold"
)

func (s *store) Hold(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, "hold", "", len(ids), func(ctx context.Context) ([]error, error) { return s.holds.Hold(ctx, ids, act) })
}

func (s *store) Release(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, "release", "", len(ids), func(ctx context.Context) ([]error, error) { return s.holds.Release(ctx, ids, act) })
}

func (s *store) Holds(ctx context.Context, filter hold.Filter) ([]hold.Held, error) {
	return do(ctx, s, "holds", filter.Queue, func(ctx context.Context) ([]hold.Held, error) { return s.holds.Holds(ctx, filter) })
}
