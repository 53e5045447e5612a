package safe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
)

func (s store) OpenBatch(ctx context.Context, one batch.Batch, act sluice.Act) (_ batch.Batch, err error) {
	defer s.caught(&err)
	return s.batches.OpenBatch(ctx, one, act)
}

func (s store) CloseBatch(ctx context.Context, id sluice.ID, all bool, act sluice.Act) (err error) {
	defer s.caught(&err)
	return s.batches.CloseBatch(ctx, id, all, act)
}

func (s store) Batch(ctx context.Context, id sluice.ID) (_ batch.Batch, err error) {
	defer s.caught(&err)
	return s.batches.Batch(ctx, id)
}

func (s store) Batches(ctx context.Context, filter batch.Filter) (_ []batch.Batch, err error) {
	defer s.caught(&err)
	return s.batches.Batches(ctx, filter)
}

func (s store) PauseBatch(ctx context.Context, id sluice.ID, reason string, act sluice.Act) (err error) {
	defer s.caught(&err)
	return s.batches.PauseBatch(ctx, id, reason, act)
}

func (s store) AdvanceBatches(ctx context.Context, limit int) (_ batch.Advanced, err error) {
	defer s.caught(&err)
	return s.batches.AdvanceBatches(ctx, limit)
}

func (s store) ForgetBatches(ctx context.Context, age time.Duration, limit int) (_ int, err error) {
	defer s.caught(&err)
	return s.batches.ForgetBatches(ctx, age, limit)
}

func (s store) RecountBatch(ctx context.Context, id sluice.ID) (_ batch.Recount, err error) {
	defer s.caught(&err)
	return s.batches.RecountBatch(ctx, id)
}
