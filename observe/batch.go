package observe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
)

func (s *store) OpenBatch(ctx context.Context, one batch.Batch, act sluice.Act) (batch.Batch, error) {
	return do(ctx, s, "open_batch", "", func(ctx context.Context) (batch.Batch, error) { return s.batches.OpenBatch(ctx, one, act) })
}

func (s *store) CloseBatch(ctx context.Context, id sluice.ID, all bool, act sluice.Act) error {
	_, err := do(ctx, s, "close_batch", "", func(ctx context.Context) (none, error) { return none{}, s.batches.CloseBatch(ctx, id, all, act) })
	return err
}

func (s *store) Batch(ctx context.Context, id sluice.ID) (batch.Batch, error) {
	return do(ctx, s, "batch", "", func(ctx context.Context) (batch.Batch, error) { return s.batches.Batch(ctx, id) })
}

func (s *store) Batches(ctx context.Context, filter batch.Filter) ([]batch.Batch, error) {
	return do(ctx, s, "batches", "", func(ctx context.Context) ([]batch.Batch, error) { return s.batches.Batches(ctx, filter) })
}

func (s *store) PauseBatch(ctx context.Context, id sluice.ID, reason string, act sluice.Act) error {
	_, err := do(ctx, s, "pause_batch", "", func(ctx context.Context) (none, error) { return none{}, s.batches.PauseBatch(ctx, id, reason, act) })
	return err
}

func (s *store) AdvanceBatches(ctx context.Context, limit int) (batch.Advanced, error) {
	c := &Call{Kind: KindStore, Name: "advance_batches"}
	return observed(ctx, s.observers, c, func(ctx context.Context) (batch.Advanced, error) {
		out, err := s.batches.AdvanceBatches(ctx, limit)
		c.Jobs = out.Callbacks
		return out, err
	})
}

func (s *store) ForgetBatches(ctx context.Context, age time.Duration, limit int) (int, error) {
	return do(ctx, s, "forget_batches", "", func(ctx context.Context) (int, error) { return s.batches.ForgetBatches(ctx, age, limit) })
}

func (s *store) RecountBatch(ctx context.Context, id sluice.ID) (batch.Recount, error) {
	return do(ctx, s, "recount_batch", "", func(ctx context.Context) (batch.Recount, error) { return s.batches.RecountBatch(ctx, id) })
}
