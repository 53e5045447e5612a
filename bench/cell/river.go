package cell

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// Kind returns River's name for a parcel.
func (Parcel) Kind() string { return "parcel" }

// riverQueue is River on PostgreSQL.
type riverQueue struct {
	pool    *pgxpool.Pool
	client  *river.Client[pgx.Tx]
	started bool
	ownTx   bool
}

type riverWorker struct {
	river.WorkerDefaults[Parcel]
	handle handle
}

func (w *riverWorker) Work(_ context.Context, job *river.Job[Parcel]) error {
	w.handle(job.Args)
	return nil
}

func openRiver(ctx context.Context, task Task, handle handle) (queue, error) {
	pool, err := pgxpool.New(ctx, task.Place)
	if err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: quietLogger()})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	config := &river.Config{Workers: river.NewWorkers(), Logger: quietLogger()}
	if task.Slots > 0 { // else the client only inserts
		config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: task.Slots}}
	}
	if task.Tuned {
		config.FetchCooldown, config.FetchPollInterval = time.Millisecond, 5*time.Millisecond
	}
	river.AddWorker(config.Workers, &riverWorker{handle: handle})
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return nil, err
	}
	return &riverQueue{pool: pool, client: client, ownTx: task.OwnTx != ""}, nil
}

func (q *riverQueue) enqueue(ctx context.Context, n int) error {
	params := make([]river.InsertManyParams, n)
	for i := range params {
		params[i].Args = newParcel()
	}
	_, err := q.client.InsertManyFast(ctx, params)
	return err
}

func (q *riverQueue) enqueueOne(ctx context.Context, parcel Parcel) error {
	if q.ownTx {
		return pgx.BeginFunc(ctx, q.pool, func(tx pgx.Tx) error {
			_, err := q.client.InsertTx(ctx, tx, parcel, nil)
			return err
		})
	}
	_, err := q.client.Insert(ctx, parcel, nil)
	return err
}

func (q *riverQueue) start(ctx context.Context) error {
	q.started = true
	return q.client.Start(ctx)
}

// unfinished names the states: then River's index answers instead of a scan of the table.
func (q *riverQueue) unfinished(ctx context.Context) (bool, error) {
	var left bool
	err := q.pool.QueryRow(ctx, `select exists (select from river_job
		where state in ('available', 'running', 'retryable', 'scheduled', 'pending'))`).Scan(&left)
	return left, err
}

func (q *riverQueue) stop(ctx context.Context) error {
	defer q.pool.Close()
	if !q.started {
		return nil
	}
	return q.client.Stop(ctx)
}
