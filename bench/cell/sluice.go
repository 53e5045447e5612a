package cell

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/metric"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

var parcels = sluice.QueueOf[Parcel]("parcels")

// sluiceQueue is Sluice: a worker and upkeep, because River's client runs its upkeep too.
type sluiceQueue struct {
	store  sluice.Store
	client *sluice.Client
	task   Task
	handle handle

	prepared bool
	keys     int                // given so far in a Keyed cell
	group    sluice.ID          // of a Grouped cell
	gauges   *metric.Gauges     // nil: no metrics
	look     *look              // nil until the first query
	quit     context.CancelFunc // nil: not started
	ended    chan error
}

func openSluice(ctx context.Context, task Task, handle handle) (queue, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, err
	}
	q := &sluiceQueue{store: store, task: task, handle: handle}
	if task.Metrics {
		if err := q.observe(); err != nil {
			return nil, err
		}
	}
	q.client = sluice.NewClient(q.store, sluice.ClientOptions{})
	return q, nil
}

// observe wraps the store for metrics and makes its gauges, as a command with --metrics does.
func (q *sluiceQueue) observe() error {
	options := metric.Options{Registerer: prometheus.NewRegistry()}
	observer, err := metric.New(options)
	if err != nil {
		return err
	}
	q.store = observe.Store(q.store, observer)
	q.gauges, err = metric.NewGauges(q.store, options)
	return err
}

func openStore(ctx context.Context, task Task) (sluice.Store, error) {
	if task.Store == SQLite {
		return sqlite.Open(ctx, task.Place, sqlite.Options{Migrate: true})
	}
	return postgres.Open(ctx, task.Place, postgres.Options{Migrate: true})
}

func (q *sluiceQueue) enqueue(ctx context.Context, n int) error {
	if err := q.prepare(ctx); err != nil {
		return err
	}
	if !q.group.IsZero() {
		return fill(ctx, q.client, n, func(int) sluice.EnqueueOptions { return sluice.EnqueueOptions{Batch: q.group} })
	}
	if q.task.Keyed {
		return fill(ctx, q.client, n, q.keyed)
	}
	return fill(ctx, q.client, n, ofTenants(q.task.Tenants))
}

// keyed gives each job a key of its own and one of 1,000 tenants.
func (q *sluiceQueue) keyed(int) sluice.EnqueueOptions {
	q.keys++
	return sluice.EnqueueOptions{Key: fmt.Sprintf("order-%d", q.keys), Tenant: fmt.Sprintf("tenant-%d", q.keys%findTenants)}
}

// prepare gives the queue its limits, once.
func (q *sluiceQueue) prepare(ctx context.Context) error {
	if q.prepared {
		return nil
	}
	q.prepared = true
	if err := dropFinding(ctx, q.task); err != nil {
		return err
	}
	if err := q.openGroup(ctx); err != nil {
		return err
	}
	return setLimits(ctx, q.client, q.task)
}

// setLimits gives the queue limits that are never reached.
func setLimits(ctx context.Context, client *sluice.Client, task Task) error {
	if !task.Limited && !task.ByTenant && !task.PerKey && !task.Fair && !task.AuditFull {
		return nil
	}
	const never = 1_000_000
	settings := sluice.DefaultSettings()
	rate := sluice.Rate{Jobs: never, Per: time.Second}
	switch {
	case task.Fair:
		settings.Fair = true
	case task.PerKey:
		settings.Limits = "host"
	case task.Limited:
		settings.Rate, settings.Concurrency = rate, never
	case task.ByTenant:
		settings.Rate = rate
		settings.Fair, settings.TenantConcurrency, settings.TenantRate = true, never, rate
	}
	if task.AuditFull {
		settings.Audit = sluice.AuditFull
	}
	_, err := client.EnsureQueue(ctx, parcels.Name(), settings, sluice.Act{By: "bench"})
	return err
}

// ofTenants gives job i the tenant i mod n; n = 0: nil, no tenants.
func ofTenants(n int) func(i int) sluice.EnqueueOptions {
	if n == 0 {
		return nil
	}
	return func(i int) sluice.EnqueueOptions { return sluice.EnqueueOptions{Tenant: fmt.Sprintf("tenant-%d", i%n)} }
}

func (q *sluiceQueue) enqueueOne(ctx context.Context, parcel Parcel) error {
	_, err := parcels.Enqueue(ctx, q.client, parcel, sluice.EnqueueOptions{})
	return err
}

func (q *sluiceQueue) start(ctx context.Context) error {
	if err := q.prepare(ctx); err != nil {
		return err
	}
	ctx, q.quit = context.WithCancel(ctx)
	q.ended = make(chan error, 3)
	w := q.worker()
	go func() { q.ended <- w.Run(ctx) }()
	go func() { q.ended <- upkeep.New(q.store, upkeep.Options{}).Run(ctx) }()
	go func() {
		if q.gauges == nil {
			q.ended <- nil
			return
		}
		q.ended <- q.gauges.Run(ctx)
	}()
	return nil
}

// worker handles one job in each call, or as many as the cell says.
func (q *sluiceQueue) worker() *worker.Worker {
	w := worker.New(q.store, worker.Options{Slots: q.task.Slots})
	if q.task.Many == 0 {
		worker.Handle(w, parcels, func(_ context.Context, job *worker.Job[Parcel]) error {
			q.handle(job.Payload)
			return nil
		}, worker.QueueOptions{})
		return w
	}
	worker.HandleMany(w, parcels, func(_ context.Context, jobs []*worker.Job[Parcel]) error {
		for _, job := range jobs {
			q.handle(job.Payload)
		}
		return nil
	}, worker.ManyOptions{Size: q.task.Many})
	return w
}

// unfinished queries the table, as for the other systems. Depth counts jobs, a cost that each of about 100 polls would
// add.
func (q *sluiceQueue) unfinished(ctx context.Context) (bool, error) {
	if q.look == nil {
		var err error
		if q.look, err = openLook(ctx, q.task); err != nil {
			return false, err
		}
	}
	return q.look.unfinished(ctx)
}

func (q *sluiceQueue) stop(ctx context.Context) error {
	err := q.checkGroup(ctx)
	if q.quit != nil {
		q.quit()
		err = errors.Join(err, <-q.ended, <-q.ended, <-q.ended)
	}
	if q.look != nil {
		err = errors.Join(err, q.look.db.Close())
	}
	return errors.Join(err, q.store.Close())
}

// withoutPool removes pool_max_conns, which only pgxpool accepts, from a database's URL.
func withoutPool(place string) string {
	return withQuery(place, func(query url.Values) { query.Del("pool_max_conns") })
}

func withQuery(place string, change func(url.Values)) string {
	at, err := url.Parse(place)
	if err != nil {
		return place // the connection attempt reports the error
	}
	query := at.Query()
	change(query)
	at.RawQuery = query.Encode()
	return at.String()
}
