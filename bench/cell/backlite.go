package cell

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mikestefanello/backlite"
)

// backliteQueue is backlite.
type backliteQueue struct {
	db      *sql.DB
	client  *backlite.Client
	started bool
}

// Config returns backlite's settings for a parcel: 3 attempts, a timeout of 1 min, no retention.
func (Parcel) Config() backlite.QueueConfig {
	return backlite.QueueConfig{Name: parcels.Name(), MaxAttempts: 3, Timeout: time.Minute, Backoff: time.Second}
}

func openBacklite(_ context.Context, task Task, handle handle) (queue, error) {
	db, err := openFile(task)
	if err != nil {
		return nil, err
	}
	client, err := backlite.NewClient(backlite.ClientConfig{DB: db, Logger: slogErrors{}, NumWorkers: task.Slots, ReleaseAfter: time.Hour})
	if err != nil {
		return nil, err
	}
	if err := client.Install(); err != nil {
		return nil, fmt.Errorf("install: %w", err)
	}
	client.Register(backlite.NewQueue(func(_ context.Context, parcel Parcel) error {
		handle(parcel)
		return nil
	}))
	return &backliteQueue{db: db, client: client}, nil
}

func (q *backliteQueue) enqueue(ctx context.Context, n int) error {
	tasks := make([]backlite.Task, n)
	for i := range tasks {
		tasks[i] = newParcel()
	}
	_, err := q.client.Add(tasks...).Ctx(ctx).Save()
	return err
}

func (q *backliteQueue) start(ctx context.Context) error {
	q.started = true
	q.client.Start(ctx)
	return nil
}

func (q *backliteQueue) unfinished(ctx context.Context) (bool, error) {
	var left bool
	err := q.db.QueryRowContext(ctx, "select exists (select 1 from backlite_tasks)").Scan(&left)
	return left, err
}

func (q *backliteQueue) stop(ctx context.Context) error {
	if q.started && !q.client.Stop(ctx) {
		return errors.New("backlite did not stop")
	}
	return q.db.Close()
}

// slogErrors passes backlite's errors to slog and drops the rest.
type slogErrors struct{}

func (slogErrors) Info(string, ...any)                 {}
func (slogErrors) Error(message string, params ...any) { slog.Error(message, params...) }
