package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// preparingTx is a caller's own transaction. The insert of jobs is prepared there if the driver prepares the
// caller's statements, too. No statistics can spoil the plan of an insert, and planning it takes longer than
// running it for one job.
type preparingTx struct {
	rowsQuerier
	store *Store
}

// Query runs a statement in the transaction.
func (t preparingTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if (sql == enqueueSQL || sql == enqueueOneSQL) && !t.store.pooled {
		args = append([]any{preparing{}}, args...)
	}
	return t.rowsQuerier.Query(ctx, sql, args...)
}

// preparing is a statement's argument that gives access to the driver's connection, in transactions of pgx and of
// database/sql alike.
type preparing struct{}

// RewriteQuery prepares the statement with the driver and changes nothing. An old statement is prepared again: a
// plan made for a small table of queues would read all of the table for ever.
func (preparing) RewriteQuery(ctx context.Context, conn *pgx.Conn, sql string, args []any) (string, []any, error) {
	if !preparesOwn(conn) {
		return sql, args, nil
	}
	data := conn.PgConn().CustomData()
	made, known := data[sql].(time.Time)
	if known && time.Since(made) > maxPlanAge {
		if err := conn.Deallocate(ctx, sql); err != nil {
			return sql, args, err
		}
		known = false
	}
	if !known {
		data[sql] = time.Now()
	}
	_, err := conn.Prepare(ctx, sql, sql)
	return sql, args, err
}

const preparesOwnKey = "sluice: the caller's statements are prepared"

// preparesOwn reports whether the driver prepares the caller's own statements on a connection. Callers behind a
// pooler in transaction mode switch that off.
func preparesOwn(conn *pgx.Conn) bool {
	data := conn.PgConn().CustomData()
	does, known := data[preparesOwnKey].(bool)
	if !known {
		does = conn.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
		data[preparesOwnKey] = does
	}
	return does
}
