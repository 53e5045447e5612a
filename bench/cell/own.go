package cell

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

// ownTx stores each job in a caller's transaction that does nothing else.
type ownTx struct {
	*sluiceQueue
	store *postgres.Store
	pool  *pgxpool.Pool
	db    *sql.DB // nil: pgx transactions
}

func openOwnTx(ctx context.Context, task Task, handle handle) (queue, error) {
	q, err := openSluice(ctx, task, handle)
	if err != nil {
		return nil, err
	}
	own := &ownTx{sluiceQueue: q.(*sluiceQueue)}
	own.store = own.sluiceQueue.store.(*postgres.Store)
	if own.pool, err = pgxpool.New(ctx, task.Place); err != nil {
		return nil, err
	}
	if task.OwnTx == DatabaseSQL {
		own.db = stdlib.OpenDBFromPool(own.pool)
	}
	return own, nil
}

func (q *ownTx) enqueueOne(ctx context.Context, parcel Parcel) error {
	if q.db == nil {
		return pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error { return q.within(ctx, q.store.InTx(tx), parcel) })
	}
	tx, err := q.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := q.within(ctx, q.store.InSQLTx(tx), parcel); err != nil {
		return err
	}
	return tx.Commit()
}

func (q *ownTx) within(ctx context.Context, tx sluice.Enqueuer, parcel Parcel) error {
	_, err := parcels.Enqueue(ctx, q.client.Within(tx), parcel, sluice.EnqueueOptions{})
	return err
}

func (q *ownTx) stop(ctx context.Context) error {
	defer q.pool.Close()
	return q.sluiceQueue.stop(ctx)
}
