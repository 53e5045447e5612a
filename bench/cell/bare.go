package cell

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	bareTable  = "create table parcel (id bigint generated always as identity primary key, state text not null, due_at timestamptz not null default now(), payload json not null)"
	bareIndex  = "create index on parcel (state, due_at, id)"
	bareInsert = "insert into parcel (state, payload) values ('queued', $1) returning id"
)

// bareQueue stores rows in a table with one index, by which a worker could fetch them.
type bareQueue struct{ pool *pgxpool.Pool }

func openBare(ctx context.Context, task Task, _ handle) (queue, error) {
	pool, err := pgxpool.New(ctx, task.Place)
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{bareTable, bareIndex} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	return &bareQueue{pool}, nil
}

func (q *bareQueue) enqueueOne(ctx context.Context, parcel Parcel) error {
	text, err := json.Marshal(parcel)
	if err != nil {
		return err
	}
	var id int64
	return q.pool.QueryRow(ctx, bareInsert, text).Scan(&id)
}

var errBare = errors.New("a plain table has no worker")

func (q *bareQueue) enqueue(context.Context, int) error       { return errBare }
func (q *bareQueue) start(context.Context) error              { return errBare }
func (q *bareQueue) unfinished(context.Context) (bool, error) { return false, errBare }
func (q *bareQueue) stop(context.Context) error               { q.pool.Close(); return nil }
