package postgres

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"
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
	var queued []queuedStatement
	kept := keepsPlans(p, sql)
	queued = append(queued, queuedStatement{sql: walkSQL(kept)})
	if p.keepsPlans() && !kept {
		queued = append(queued, queuedStatement{sql: planForArgumentsSQL})
	}
	return queryBehind(ctx, conn, conn.Release, queued, sql, arguments[1:])
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

// queryBehind sends statements together, and returns the rows of the last. Done is called when these are closed, or at an
// error.
func queryBehind(ctx context.Context, conn batchSender, done func(), queued []queuedStatement, sql string, arguments []any) (pgx.Rows, error) {
	var batch pgx.Batch
	for _, s := range queued {
		batch.Queue(s.sql, s.arguments...)
	}
	batch.Queue(sql, arguments...)
	rows := &lastRows{results: conn.SendBatch(ctx, &batch), done: done}
	if err := rows.begin(queued); err != nil {
		rows.Close()
		return nil, err
	}
	return rows, nil
}

// batchSender is a connection that sends statements together.
type batchSender interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// lastRows are the rows of the last statement of a batch. Closing them ends the batch and, where there is no other, its
// transaction.
type lastRows struct {
	pgx.Rows // nil: a statement failed at once
	results  pgx.BatchResults
	done     func()
	closed   bool
	ended    error // why the batch failed after its last rows
}

// begin reads the results of the statements before the last.
func (r *lastRows) begin(queued []queuedStatement) (err error) {
	for _, s := range queued {
		rows, err := r.results.Query()
		if err == nil {
			err = s.of(rows)
		}
		if err != nil {
			return err
		}
	}
	r.Rows, err = r.results.Query()
	return err
}

// Close ends the batch.
func (r *lastRows) Close() {
	if r.closed {
		return
	}
	r.closed = true
	if r.Rows != nil {
		r.Rows.Close()
	}
	r.ended = r.results.Close()
	r.done()
}

// Err returns why there are no more rows, or why the batch failed after them.
func (r *lastRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.ended
}

// Next advances to the next row. After the last row, the batch has ended.
func (r *lastRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}
