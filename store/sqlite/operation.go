package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/operation"
)

//go:embed sql/operation.sql
var operationSQL string

//go:embed sql/operation_save.sql
var operationSaveSQL string

//go:embed sql/operations.sql
var operationsSQL string

//go:embed sql/operations_open.sql
var operationsOpenSQL string

// SaveOperation stores an operation. The audit records changes of its state and its terms, but not
// its steps.
func (s *Store) SaveOperation(ctx context.Context, op operation.Operation, act sluice.Act) (operation.Operation, error) {
	var next operation.Operation
	err := s.write(ctx, "save operation", func(tx runner, _ bool) error {
		stored, err := list(tx, scanOperation, operationSQL, op.ID[:])
		if err != nil {
			return err
		}
		switch {
		case len(stored) > 0 && stored[0].IsOf(act):
			next = stored[0] // the same act stored it before
			return nil
		case len(stored) == 0 && op.Version != 0, len(stored) > 0 && stored[0].Version != op.Version:
			return sluice.ErrConflict
		case len(stored) == 0:
			next, err = putOperation(tx, nil, op, act)
		default:
			next, err = putOperation(tx, &stored[0], op, act)
		}
		return err
	})
	if err != nil {
		return operation.Operation{}, err
	}
	return next, nil
}

// putOperation replaces the stored operation. Stored is nil for a new one.
func putOperation(tx runner, stored *operation.Operation, op operation.Operation, act sluice.Act) (operation.Operation, error) {
	next, told := op.Stored(stored, time.UnixMicro(now()), act)
	body, err := next.Body()
	if err != nil {
		return next, err
	}
	if _, err := tx.exec(operationSaveSQL, next.ID[:], next.Version, string(next.Kind), string(next.State), micros(next.CreatedAt),
		micros(next.EndedAt), body); err != nil || !told {
		return next, err
	}
	entry, err := next.Telling(stored, act)
	if err != nil {
		return next, err
	}
	return next, tell(tx, entry)
}

func scanOperation(rows *sql.Rows) (operation.Operation, error) {
	var version int64
	var body string
	if err := rows.Scan(&version, &body); err != nil {
		return operation.Operation{}, err
	}
	return operation.FromRow(version, body, time.UnixMicro(now()))
}

// Operation returns one operation.
func (s *Store) Operation(ctx context.Context, id sluice.ID) (operation.Operation, error) {
	return lookUp(ctx, s, "look up operation", scanOperation, operationSQL, id[:])
}

// Operations lists operations, newest first.
func (s *Store) Operations(ctx context.Context, filter operation.Filter) ([]operation.Operation, error) {
	text, before := operationsSQL, bytes.Repeat([]byte{0xff}, 17)
	if filter.Open {
		text = operationsOpenSQL
	}
	if !filter.Before.IsZero() {
		before = filter.Before[:]
	}
	var out []operation.Operation
	err := s.read(ctx, "list operations", func(tx runner) (err error) {
		out, err = list(tx, scanOperation, text, before, cmp.Or(filter.Limit, 100))
		return err
	})
	return out, err
}
