package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// pipeline is a transaction that sends statements together if none needs the rows of another. Beside busy handlers,
// each wait for an answer costs a claim about 1 ms.
type pipeline struct {
	conn     keepingConn
	together bool // the connection plans statements of a batch as query does
	queued   []queuedStatement
}

type queuedStatement struct {
	sql       string
	arguments []any
	read      func(pgx.Rows) error // nil: no caller needs its rows
}

// pipelined runs do in a transaction, and commits it together with the statements that are still queued.
func (s *Store) pipelined(ctx context.Context, do func(p *pipeline) error) error {
	acquired, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	conn := keepingConn{acquired, s.pool.keepsPlans()}
	defer conn.Release() // closes a connection that is still in the transaction
	p := &pipeline{conn: conn, together: s.pool.together}
	p.queue(beginSQL, nil)
	p.queue(walkSQL(p.conn.keeps), nil)
	err = do(p)
	if err == nil {
		p.queue("commit", nil)
		err = p.flush(ctx)
	}
	if err != nil {
		_, _ = conn.Exec(ctx, "rollback")
	}
	return err
}

// queue delays a statement until the next flush or query.
func (p *pipeline) queue(sql string, read func(pgx.Rows) error, arguments ...any) {
	p.queued = append(p.queued, queuedStatement{sql, arguments, read})
}

// flush sends the queued statements, and reads their rows in the same order.
func (p *pipeline) flush(ctx context.Context) error {
	queued := p.queued
	p.queued = nil
	if !p.together || len(queued) < 2 {
		return p.oneByOne(ctx, queued)
	}
	last := queued[len(queued)-1]
	rows, err := queryBehind(ctx, p.conn, func() {}, queued[:len(queued)-1], last.sql, last.arguments)
	if err != nil {
		return err
	}
	return last.of(rows)
}

func (p *pipeline) oneByOne(ctx context.Context, queued []queuedStatement) error {
	for _, s := range queued {
		rows, err := query(ctx, p.conn, s.sql, s.arguments...)
		if err != nil {
			return err
		}
		if err := s.of(rows); err != nil {
			return err
		}
	}
	return nil
}

// of reads the rows of the statement, if a caller needs them.
func (s queuedStatement) of(rows pgx.Rows) (err error) {
	if s.read != nil {
		err = s.read(rows)
	}
	rows.Close()
	if err != nil {
		return err
	}
	return rows.Err()
}

func (p *pipeline) keepsPlans() bool { return p.conn.keeps }

// Query sends a statement together with the queued ones. If its plan needs other settings than theirs, Query sends it
// after them, in the mode that query chose.
func (p *pipeline) Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error) {
	queued := p.queued
	if p.together && len(queued) > 0 && ours(arguments) && p.conn.keeps == keepsPlans(p, sql) {
		p.queued = nil
		return queryBehind(ctx, p.conn, func() {}, queued, sql, arguments[1:])
	}
	if err := p.flush(ctx); err != nil {
		return nil, err
	}
	return p.conn.Query(ctx, sql, arguments...)
}
