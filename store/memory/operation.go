package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/operation"
)

// storedOperation is an operation as the store keeps it.
type storedOperation struct {
	version int64
	ended   bool
	body    string
}

// SaveOperation stores an operation. The audit records changes of its state and its terms, but not
// its steps.
func (s *Store) SaveOperation(ctx context.Context, op operation.Operation, act sluice.Act) (operation.Operation, error) {
	return save(ctx, s, saving.Operations, op, act, home[operation.Operation]{
		stored: func() (*operation.Operation, error) {
			kept, known := s.operations[op.ID]
			if !known {
				return nil, nil
			}
			stored, err := operation.FromRow(kept.version, kept.body, s.now())
			return &stored, err
		},
		store: func(next operation.Operation) error {
			body, err := next.Body()
			if err == nil {
				s.operations[op.ID] = storedOperation{next.Version, !next.EndedAt.IsZero(), body}
			}
			return err
		},
	})
}

// Operation returns one operation.
func (s *Store) Operation(ctx context.Context, id sluice.ID) (operation.Operation, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return operation.Operation{}, err
	}
	defer leave()
	kept, known := s.operations[id]
	if !known {
		return operation.Operation{}, sluice.ErrNotFound
	}
	return operation.FromRow(kept.version, kept.body, s.now())
}

// Operations lists operations, newest first.
func (s *Store) Operations(ctx context.Context, filter operation.Filter) ([]operation.Operation, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []operation.Operation
	for id, kept := range s.operations {
		if filter.Open && kept.ended || !filter.Before.IsZero() && bytes.Compare(id[:], filter.Before[:]) >= 0 {
			continue
		}
		op, err := operation.FromRow(kept.version, kept.body, s.now())
		if err != nil {
			return nil, err
		}
		out = append(out, op)
	}
	slices.SortFunc(out, func(a, b operation.Operation) int { return bytes.Compare(b.ID[:], a.ID[:]) })
	return out[:min(len(out), cmp.Or(filter.Limit, 100))], nil
}
