package postgres

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The settings that plan the store's statements last as long as their transaction, because the pool may be the
// caller's.

//go:embed sql/walk_in_order.sql
var walkInOrderSQL string

// walkKeptSQL is the same settings for kept plans, which know no arguments from the first time on. A walk needs the
// same plan for all arguments. The server would otherwise plan again for arrays that it takes to have few elements.
var walkKeptSQL = strings.TrimSpace(walkInOrderSQL) + ",\n       set_config('plan_cache_mode', 'force_generic_plan', true)"

// walkSQL returns the settings of a statement or a transaction.
func walkSQL(keepsPlans bool) string {
	if keepsPlans {
		return walkKeptSQL
	}
	return walkInOrderSQL
}

// planForArgumentsSQL makes the server plan the next statements for their arguments, although they are prepared.
// The right index may depend on which arguments are empty.
const planForArgumentsSQL = "select set_config('plan_cache_mode', 'force_custom_plan', true)"

// anyPlan are statements for which any plan is good: they write or find rows by key, or read at most a tiny table.
// They run without settings.
var anyPlan = setOf(enqueueOneSQL, heartbeatAndCheckSQL, aliveSQL, notifySQL, notifyTakenSQL, tooNewSQL, crowdsSQL)

// Query runs a statement in its own transaction. If the statement is the store's and plans matter to it, Query
// sends its settings along.
func (p pool) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	if !p.together || anyPlan[sql] || !ours(arguments) {
		return p.Pool.Query(ctx, sql, arguments...)
	}
	conn, err := p.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	var batch pgx.Batch
	kept := keepsPlans(p, sql)
	batch.Queue(walkSQL(kept))
	if p.keepsPlans() && !kept {
		batch.Queue(planForArgumentsSQL)
	}
	settings := batch.Len()
	batch.Queue(sql, arguments[1:]...)
	rows := &walkedRows{conn: conn, results: conn.SendBatch(ctx, &batch)}
	if err := rows.begin(settings); err != nil {
		rows.Close()
		return nil, err
	}
	return rows, nil
}

// ours reports whether query sent a statement, and without options that a batch does not support.
func ours(arguments []any) bool {
	if len(arguments) == 0 {
		return false
	}
	if _, is := arguments[0].(pgx.QueryExecMode); !is {
		return false
	}
	if len(arguments) == 1 {
		return true
	}
	_, formats := arguments[1].(pgx.QueryResultFormats)
	return !formats
}

// walkedRows are the rows of a statement that was sent after its settings. Closing them ends the transaction.
type walkedRows struct {
	pgx.Rows // nil: the statement failed at once
	conn     *pgxpool.Conn
	results  pgx.BatchResults
	closed   bool
	ended    error // why the transaction was not committed
}

// begin skips the results of the settings.
func (r *walkedRows) begin(settings int) (err error) {
	for range settings {
		if _, err := r.results.Exec(); err != nil {
			return err
		}
	}
	r.Rows, err = r.results.Query()
	return err
}

// Close ends the transaction and releases the connection.
func (r *walkedRows) Close() {
	if r.closed {
		return
	}
	r.closed = true
	if r.Rows != nil {
		r.Rows.Close()
	}
	r.ended = r.results.Close()
	r.conn.Release()
}

// Err returns why there are no more rows, or why the transaction was not committed.
func (r *walkedRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.ended
}

// Next advances to the next row. After the last row, the transaction has ended.
func (r *walkedRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}
