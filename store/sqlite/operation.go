package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/saving"
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
	return save(ctx, s, "save operation", saving.Operations, op, act, home[operation.Operation]{
		stored: func(tx runner) ([]operation.Operation, error) { return list(tx, scanOperation, operationSQL, op.ID[:]) },
		store: func(tx runner, next operation.Operation) error {
			body, err := next.Body()
			if err != nil {
				return err
			}
			_, err = tx.exec(operationSaveSQL, next.ID[:], next.Version, string(next.Kind), string(next.State), micros(next.CreatedAt),
				micros(next.EndedAt), body)
			return err
		},
	})
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
