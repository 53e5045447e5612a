package cell

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	bareTable = `create table parcel (id bigint generated always as identity primary key, state text not null default 'queued',
		due_at timestamptz not null default now(), lease_until timestamptz, ended_at timestamptz, payload json not null)`
	bareIndex  = "create index on parcel (due_at, id) where state = 'queued'"
	bareInsert = "insert into parcel (payload) values ($1) returning id"
	bareClaim  = `update parcel set state = 'claimed', lease_until = now() + interval '5 minutes' where id = any (array (
		select id from parcel where state = 'queued' and due_at <= now() order by due_at, id limit $1 for update skip locked)) returning id, payload`
	bareComplete = "update parcel set state = 'completed', ended_at = now() where id = any ($1) and state = 'claimed'"
	bareLeft     = "select exists (select 1 from parcel where state in ('queued', 'claimed'))"
	// bareClaimers claim at once, each so many rows as the cell has slots, at most bareClaimed.
	bareClaimers, bareClaimed = 4, 500
)

// bareQueue is a table with the least that a queue needs which keeps what ended: a state, a due time, a lease, one index. It
// recovers, limits, orders and explains nothing.
type bareQueue struct {
	pool   *pgxpool.Pool
	slots  int
	handle handle

	quit    context.CancelFunc // nil: not started
	working sync.WaitGroup
	mu      sync.Mutex
	failed  error
}

func openBare(ctx context.Context, task Task, handle handle) (queue, error) {
	pool, err := pgxpool.New(ctx, task.Place)
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{bareTable, bareIndex} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	return &bareQueue{pool: pool, slots: task.Slots, handle: handle}, nil
}

func (q *bareQueue) enqueueOne(ctx context.Context, parcel Parcel) error {
	text, err := json.Marshal(parcel)
	if err != nil {
		return err
	}
	var id int64
	return q.pool.QueryRow(ctx, bareInsert, text).Scan(&id)
}

func (q *bareQueue) enqueue(ctx context.Context, n int) error {
	text, err := json.Marshal(newParcel())
	if err != nil {
		return err
	}
	_, err = q.pool.CopyFrom(ctx, pgx.Identifier{"parcel"}, []string{"payload"}, pgx.CopyFromSlice(n, func(int) ([]any, error) {
		return []any{text}, nil
	}))
	return err
}

func (q *bareQueue) start(ctx context.Context) error {
	ctx, q.quit = context.WithCancel(ctx)
	for range bareClaimers {
		q.working.Go(func() {
			if err := q.work(ctx); err != nil && ctx.Err() == nil {
				q.mu.Lock()
				defer q.mu.Unlock()
				q.failed = errors.Join(q.failed, err)
			}
		})
	}
	return nil
}

// work claims, handles and completes until nothing is left for it.
func (q *bareQueue) work(ctx context.Context) error {
	for {
		ids, err := q.claim(ctx)
		if err != nil || len(ids) == 0 {
			return err
		}
		if _, err := q.pool.Exec(ctx, bareComplete, ids); err != nil {
			return err
		}
	}
}

// claim claims rows and handles them.
func (q *bareQueue) claim(ctx context.Context) ([]int64, error) {
	rows, err := q.pool.Query(ctx, bareClaim, min(q.slots, bareClaimed))
	if err != nil {
		return nil, err
	}
	var ids []int64
	var id int64
	var text []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &text}, func() error {
		var parcel Parcel
		if err := json.Unmarshal(text, &parcel); err != nil {
			return err
		}
		ids = append(ids, id)
		q.handle(parcel)
		return nil
	})
	return ids, err
}

func (q *bareQueue) unfinished(ctx context.Context) (left bool, err error) {
	err = q.pool.QueryRow(ctx, bareLeft).Scan(&left)
	return left, err
}

func (q *bareQueue) stop(context.Context) error {
	if q.quit != nil {
		q.working.Wait() // all rows are completed
		q.quit()
	}
	q.pool.Close()
	return q.failed
}
