package memory

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/sluice-queue/sluice"
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
	leave, err := s.enter(ctx)
	if err != nil {
		return operation.Operation{}, err
	}
	defer leave()
	var stored *operation.Operation
	if kept, known := s.operations[op.ID]; known {
		old, err := operation.FromRow(kept.version, kept.body, s.now())
		if err != nil || old.IsOf(act) {
			return old, err
		}
		stored = &old
	}
	if stored == nil && op.Version != 0 || stored != nil && stored.Version != op.Version {
		return operation.Operation{}, sluice.ErrConflict
	}
	next, told := op.Stored(stored, s.now(), act)
	body, err := next.Body()
	if err != nil {
		return operation.Operation{}, err
	}
	if told {
		entry, err := next.Telling(stored, act)
		if err != nil {
			return operation.Operation{}, err
		}
		s.add(entry)
	}
	s.operations[op.ID] = storedOperation{next.Version, !next.EndedAt.IsZero(), body}
	return operation.FromRow(next.Version, body, s.now())
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
