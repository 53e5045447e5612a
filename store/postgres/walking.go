package postgres

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The settings by which statements of ours are planned last as long as their transaction: the pool is the caller's, too.

//go:embed sql/walk_in_order.sql
var walkInOrderSQL string

// walkKeptSQL are the same settings for plans that are kept, which then know no arguments from the first time on. A walk is the
// same for all of them, and the server would go on planning for each where it takes arrays to have fewer entries than usual.
var walkKeptSQL = strings.TrimSpace(walkInOrderSQL) + ",\n       set_config('plan_cache_mode', 'force_generic_plan', true)"

// walkSQL gives the settings of a statement or a transaction of ours.
func walkSQL(keepsPlans bool) string {
	if keepsPlans {
		return walkKeptSQL
	}
	return walkInOrderSQL
}

// planForArgumentsSQL has the statements after it planned for their arguments, though they are known by name. Which of
// them say nothing may decide along which index to walk.
const planForArgumentsSQL = "select set_config('plan_cache_mode', 'force_custom_plan', true)"

// anyPlan are statements of which any plan will do: they put or find rows by their keys, or read no table or a tiny one. They go
// without settings.
var anyPlan = setOf(enqueueOneSQL, beatAndCheckSQL, aliveSQL, notifySQL, notifyTakenSQL, tooNewSQL, crowdsSQL)

// Query runs a statement in a transaction of its own. One of ours goes together with its settings, if plans matter to it.
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

// ours reports whether a statement was sent by query, and has no other option, which statements that go together cannot have.
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

// begin reads past the settings.
func (r *walkedRows) begin(settings int) (err error) {
	for range settings {
		if _, err := r.results.Exec(); err != nil {
			return err
		}
	}
	r.Rows, err = r.results.Query()
	return err
}

// Close ends the transaction and gives the connection back.
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

// Err tells why there are no more rows, or why the transaction was not committed.
func (r *walkedRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.ended
}

// Next goes on to the next row. After the last one the transaction has ended.
func (r *walkedRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}
