package remote

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/operation"
)

// operationPath is the path of an operation.
func operationPath(id sluice.ID) string { return "/operations/" + id.String() }

// SaveOperation starts an operation, or changes the state and the rate of a stored one. The server carries it out.
func (s *Store) SaveOperation(ctx context.Context, o operation.Operation, act sluice.Act) (operation.Operation, error) {
	var view wire.OperationView
	body := wire.SaveOperationBody{Operation: wire.OperationTermsOf(o), ReasonBody: why(act)}
	err := s.call(ctx, saving("save an operation", operationPath(o.ID), &act, body, &view))
	return view.Read(), err
}

// Operation returns an operation.
func (s *Store) Operation(ctx context.Context, id sluice.ID) (operation.Operation, error) {
	var view wire.OperationView
	err := s.call(ctx, request{verb: "read an operation", path: operationPath(id), out: &view})
	return view.Read(), err
}

// Operations lists operations, the newest first.
func (s *Store) Operations(ctx context.Context, filter operation.Filter) ([]operation.Operation, error) {
	size, err := feature.PageSize(filter.Limit)
	if err != nil {
		return nil, err
	}
	before := filter.Before
	return pages(size, func(size int) (found []operation.Operation, err error) {
		q := params{}
		q.id("before", before)
		q.number("limit", size)
		if filter.Open {
			q.text("open", "true")
		}
		var answer wire.OperationList
		err = s.call(ctx, request{verb: "list operations", path: "/operations", query: q.values(), out: &answer})
		for _, view := range answer.Operations {
			found, before = append(found, view.Read()), view.ID
		}
		return found, err
	})
}
