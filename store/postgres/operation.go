package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/operation"
)

//go:embed sql/operation.sql
var operationSQL string

//go:embed sql/operation_lock.sql
var operationLockSQL string

//go:embed sql/operation_clock.sql
var operationClockSQL string

//go:embed sql/operation_save.sql
var operationSaveSQL string

//go:embed sql/operations.sql
var operationsSQL string

//go:embed sql/operations_open.sql
var operationsOpenSQL string

// SaveOperation stores an operation. The audit records changes of its state and its terms, but not its steps.
func (s *Store) SaveOperation(ctx context.Context, op operation.Operation, act sluice.Act) (operation.Operation, error) {
	act = saving.Named(act)
	return save(ctx, s, "save operation", saving.Operations, op, act, home[operation.Operation]{
		stored: func(ctx context.Context, db rowsQuerier) ([]operation.Operation, error) {
			return list(ctx, db, scanOperation, operationLockSQL, [16]byte(op.ID))
		},
		store: func(ctx context.Context, tx pgx.Tx, stored *operation.Operation) (time.Time, error) {
			return storeOperation(ctx, tx, stored, op, act)
		},
	})
}

// storeOperation stores the next version of an operation, and returns the time by the server's clock.
func storeOperation(ctx context.Context, tx pgx.Tx, stored *operation.Operation, op operation.Operation, act sluice.Act) (at time.Time, err error) {
	if stored != nil {
		at = stored.Now
	} else {
		clock, err := list(ctx, tx, pgx.RowTo[time.Time], operationClockSQL)
		if err != nil {
			return at, err
		}
		at = clock[0]
	}
	next := op.Stored(stored, at, act)
	body, err := next.Body()
	if err != nil {
		return at, err
	}
	saved, err := list(ctx, tx, pgx.RowTo[int64], operationSaveSQL, [16]byte(next.ID), next.Version, string(next.Kind), string(next.State),
		next.CreatedAt, nullTime(next.EndedAt), body)
	if err == nil && len(saved) == 0 {
		err = sluice.ErrConflict
	}
	return at, err
}

func scanOperation(row pgx.CollectableRow) (operation.Operation, error) {
	var version int64
	var body string
	var now time.Time
	if err := row.Scan(&version, &body, &now); err != nil {
		return operation.Operation{}, err
	}
	return operation.FromRow(version, body, now)
}

// Operation returns one operation.
func (s *Store) Operation(ctx context.Context, id sluice.ID) (operation.Operation, error) {
	return lookUp(ctx, s, "look up operation", scanOperation, operationSQL, [16]byte(id))
}

// Operations lists operations, newest first.
func (s *Store) Operations(ctx context.Context, filter operation.Filter) ([]operation.Operation, error) {
	text := operationsSQL
	if filter.Open {
		text = operationsOpenSQL
	}
	var out []operation.Operation
	err := s.call(ctx, "list operations", func(ctx context.Context, _ bool) (err error) {
		out, err = list(ctx, s.pool, scanOperation, text, nullUUID(filter.Before), cmp.Or(filter.Limit, 100))
		return err
	})
	return out, err
}
