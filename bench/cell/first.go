package cell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

// pioneer is a system that can store the first job of a new queue.
type pioneer interface {
	queue
	enqueueNew(ctx context.Context, name string, parcel Parcel) error
}

// measureFirst times concurrent callers that store the first jobs of a new queue, queue by queue.
func measureFirst(ctx context.Context, task Task) (Result, error) {
	var systems []pioneer
	for range max(task.Processes, 1) {
		q, err := open(ctx, task, func(Parcel) {})
		if err != nil {
			return nil, fmt.Errorf("open: %w", err)
		}
		system, can := q.(pioneer)
		if !can {
			return nil, fmt.Errorf("%s cannot name a new queue", task.System)
		}
		systems = append(systems, system)
	}
	var took []float64
	for n := range task.Jobs + 1 {
		some, err := callFirst(ctx, systems, fmt.Sprintf("new-%d", n), task.Callers)
		if err != nil {
			return nil, err
		}
		if n > 0 { // the first queue opens the connections
			took = append(took, some...)
		}
	}
	for _, system := range systems {
		if err := system.stop(ctx); err != nil {
			return nil, err
		}
	}
	return percentiles(took), nil
}

// callFirst starts all callers at once and returns the time of each call, in milliseconds.
func callFirst(ctx context.Context, systems []pioneer, name string, callers int) ([]float64, error) {
	took, errs := make([]float64, callers), make([]error, callers)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			<-start
			begun := time.Now()
			errs[i] = systems[i%len(systems)].enqueueNew(ctx, name, newParcel())
			took[i] = millis(time.Since(begun))
		})
	}
	close(start)
	all.Wait()
	return took, errors.Join(errs...)
}

func (q *sluiceQueue) enqueueNew(ctx context.Context, name string, parcel Parcel) error {
	text, err := json.Marshal(parcel)
	if err != nil {
		return err
	}
	_, err = q.client.Enqueue(ctx, sluice.NewJob{Queue: name, Payload: text})
	return err
}

func (q *riverQueue) enqueueNew(ctx context.Context, name string, parcel Parcel) error {
	_, err := q.client.Insert(ctx, parcel, &river.InsertOpts{Queue: name})
	return err
}

// sqlQueue is Sluice through its SQL function sluice.enqueue.
type sqlQueue struct {
	bareQueue
	store *postgres.Store
}

func openSQL(ctx context.Context, task Task, _ handle) (queue, error) {
	if _, err := postgres.Migrate(ctx, withoutPool(task.Place)); err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, task.Place, postgres.Options{})
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, task.Place)
	return &sqlQueue{bareQueue{pool: pool}, store}, err
}

func (q *sqlQueue) enqueueNew(ctx context.Context, name string, parcel Parcel) error {
	text, err := json.Marshal(parcel)
	if err != nil {
		return err
	}
	_, err = q.pool.Exec(ctx, "select id from sluice.enqueue(queue => $1, payload => $2, new_queue => true)", name, string(text))
	return err
}

func (q *sqlQueue) stop(ctx context.Context) error {
	return errors.Join(q.store.Close(), q.bareQueue.stop(ctx))
}
