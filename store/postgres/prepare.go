package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// preparingTx is a caller's own transaction in which the insert of jobs is prepared, if the driver prepares the caller's own
// statements. An insert has no plan that statistics could spoil, and planning it takes longer than running it for one job.
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

// preparing is an argument of a statement by which the driver lets us have its connection, be the transaction of pgx or of
// database/sql.
type preparing struct{}

// RewriteQuery prepares the statement, of which the driver keeps account, and changes nothing. It is prepared anew once its
// plan is old: that of a small table of queues reads all of it ever after.
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

// preparesOwn reports whether the driver prepares the caller's own statements on a connection. Callers whose pooler gives
// each transaction another server process have it do without.
func preparesOwn(conn *pgx.Conn) bool {
	data := conn.PgConn().CustomData()
	does, known := data[preparesOwnKey].(bool)
	if !known {
		does = conn.Config().DefaultQueryExecMode == pgx.QueryExecModeCacheStatement
		data[preparesOwnKey] = does
	}
	return does
}
