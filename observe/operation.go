package observe

import (
	"context"

	"github.com/sluice-queue/sluice"
)

func (s *store) SaveOperation(ctx context.Context, operation sluice.Operation, act sluice.Act) (sluice.Operation, error) {
	return do(ctx, s, "save_operation", "", func(ctx context.Context) (sluice.Operation, error) {
		return s.Store.SaveOperation(ctx, operation, act)
	})
}

func (s *store) Operation(ctx context.Context, id sluice.ID) (sluice.Operation, error) {
	return do(ctx, s, "operation", "", func(ctx context.Context) (sluice.Operation, error) { return s.Store.Operation(ctx, id) })
}

func (s *store) Operations(ctx context.Context, filter sluice.OperationFilter) ([]sluice.Operation, error) {
	return do(ctx, s, "operations", "", func(ctx context.Context) ([]sluice.Operation, error) { return s.Store.Operations(ctx, filter) })
}
