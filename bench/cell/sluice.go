package cell

import (
	"context"
	"errors"
	"net/url"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

var parcels = sluice.QueueOf[Parcel]("parcels")

// sluiceQueue is Sluice: a worker and, because River does the same in its client, upkeep.
type sluiceQueue struct {
	store  sluice.Store
	client *sluice.Client
	task   Task
	handle handle

	look  *look              // nil: nobody has asked so far
	quit  context.CancelFunc // nil: it was not started
	ended chan error
}

func openSluice(ctx context.Context, task Task, handle handle) (queue, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, err
	}
	return &sluiceQueue{store: store, client: sluice.NewClient(store, sluice.ClientOptions{}), task: task, handle: handle}, nil
}

func openStore(ctx context.Context, task Task) (sluice.Store, error) {
	if task.Store == SQLite {
		return sqlite.Open(ctx, task.Place, sqlite.Options{Migrate: true})
	}
	return postgres.Open(ctx, task.Place, postgres.Options{Migrate: true})
}

func (q *sluiceQueue) enqueue(ctx context.Context, n int) error {
	return enqueueMany(ctx, q.client, n, sluice.EnqueueOptions{})
}

func enqueueMany(ctx context.Context, client *sluice.Client, n int, options sluice.EnqueueOptions) error {
	jobs := make([]sluice.NewJob, n)
	for i := range jobs {
		var err error
		if jobs[i], err = parcels.NewJob(newParcel(), options); err != nil {
			return err
		}
	}
	_, err := client.EnqueueMany(ctx, jobs)
	return err
}

func (q *sluiceQueue) enqueueOne(ctx context.Context, parcel Parcel) error {
	_, err := parcels.Enqueue(ctx, q.client, parcel, sluice.EnqueueOptions{})
	return err
}

func (q *sluiceQueue) start(ctx context.Context) error {
	if q.task.Limited {
		settings := sluice.DefaultSettings()
		settings.Rate, settings.InFlightLimit = 1_000_000, 1_000_000
		if _, err := q.client.EnsureQueue(ctx, parcels.Name(), settings, sluice.Act{By: "bench"}); err != nil {
			return err
		}
	}
	ctx, q.quit = context.WithCancel(ctx)
	q.ended = make(chan error, 2)
	w := worker.New(q.store, worker.Options{Slots: q.task.Slots})
	worker.Handle(w, parcels, func(_ context.Context, job *worker.Job[Parcel]) error {
		q.handle(job.Payload)
		return nil
	}, worker.QueueOptions{})
	go func() { q.ended <- w.Run(ctx) }()
	go func() { q.ended <- upkeep.New(q.store, upkeep.Options{}).Run(ctx) }()
	return nil
}

// unfinished asks the table, as it is done for the other systems: Depth counts, which is more than
// is asked for here, and it would be paid a hundred times.
func (q *sluiceQueue) unfinished(ctx context.Context) (bool, error) {
	if q.look == nil {
		var err error
		if q.look, err = openLook(ctx, q.task); err != nil {
			return false, err
		}
	}
	return q.look.unfinished(ctx)
}

func (q *sluiceQueue) stop(context.Context) error {
	var err error
	if q.quit != nil {
		q.quit()
		err = errors.Join(<-q.ended, <-q.ended)
	}
	if q.look != nil {
		err = errors.Join(err, q.look.db.Close())
	}
	return errors.Join(err, q.store.Close())
}

// withoutPool gives a database's URL without what only pgxpool understands.
func withoutPool(place string) string {
	at, err := url.Parse(place)
	if err != nil {
		return place // whoever connects tells what is wrong with it
	}
	query := at.Query()
	query.Del("pool_max_conns")
	at.RawQuery = query.Encode()
	return at.String()
}
