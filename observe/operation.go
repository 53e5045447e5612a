package observe

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/operation"
)

func (s *store) SaveOperation(ctx context.Context, op operation.Operation, act sluice.Act) (operation.Operation, error) {
	return do(ctx, s, "save_operation", "", func(ctx context.Context) (operation.Operation, error) {
		return s.operations.SaveOperation(ctx, op, act)
	})
}

func (s *store) Operation(ctx context.Context, id sluice.ID) (operation.Operation, error) {
	return do(ctx, s, "operation", "", func(ctx context.Context) (operation.Operation, error) { return s.operations.Operation(ctx, id) })
}

func (s *store) Operations(ctx context.Context, filter operation.Filter) ([]operation.Operation, error) {
	return do(ctx, s, "operations", "", func(ctx context.Context) ([]operation.Operation, error) { return s.operations.Operations(ctx, filter) })
}
