package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
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
func (s *Store) SaveOperation(ctx context.Context, op operation.Operation, act sluice.Act) (next operation.Operation, err error) {
	err = s.call(ctx, "save operation", func(ctx context.Context, _ bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			stored, err := list(ctx, tx, scanOperation, operationLockSQL, [16]byte(op.ID))
			if err != nil {
				return err
			}
			if len(stored) > 0 && stored[0].IsOf(act) {
				next = stored[0] // an earlier try stored it
				return nil
			}
			if len(stored) == 0 && op.Version != 0 || len(stored) > 0 && stored[0].Version != op.Version {
				return sluice.ErrConflict
			}
			next, err = putOperation(ctx, tx, stored, op, act)
			return err
		})
	})
	if err != nil {
		return operation.Operation{}, err
	}
	return next, nil
}

// putOperation replaces the stored operation in rows, if there is one.
func putOperation(ctx context.Context, tx pgx.Tx, rows []operation.Operation, op operation.Operation, act sluice.Act) (next operation.Operation, err error) {
	var stored *operation.Operation
	var at time.Time
	if len(rows) > 0 {
		stored, at = &rows[0], rows[0].Now
	} else {
		clock, err := list(ctx, tx, pgx.RowTo[time.Time], operationClockSQL)
		if err != nil {
			return next, err
		}
		at = clock[0]
	}
	next, told := op.Stored(stored, at, act)
	body, err := next.Body()
	if err != nil {
		return next, err
	}
	saved, err := list(ctx, tx, pgx.RowTo[int64], operationSaveSQL, [16]byte(next.ID), next.Version, string(next.Kind), string(next.State),
		next.CreatedAt, nullTime(next.EndedAt), body)
	if err != nil {
		return next, err
	}
	if len(saved) == 0 {
		return next, sluice.ErrConflict
	}
	if !told {
		return next, nil
	}
	entry, err := next.Telling(stored, act)
	if err != nil {
		return next, err
	}
	return next, exec(ctx, tx, auditChangeSQL, string(entry.Object), entry.Name, entry.Actor, entry.Reason, entry.Before, entry.After, nullUUID(entry.ActID))
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
