package cell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// lateness collects how long after an instant something came, such as the start of a schedule's job after its fire.
type lateness struct {
	mu   sync.Mutex
	late []float64 // in milliseconds
}

func (l *lateness) note(since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = append(l.late, millis(time.Since(since)))
}

func (l *lateness) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.late)
}

// fireEvery is the interval of the schedules of a Fires cell.
func fireEvery(task Task) time.Duration {
	return time.Duration(max(1000, task.EveryMillis)) * time.Millisecond
}

// measureFires lets task.Jobs schedules fire once a second, or every task.EveryMillis, for task.Seconds, and measures how late the
// jobs start. The first fires warm up. Started is the share of the fires that have run.
func measureFires(ctx context.Context, task Task) (Result, error) {
	var seen lateness
	run := runSluiceFires
	if task.System == River {
		run = runRiverFires
	}
	working, quit := context.WithCancel(ctx)
	defer quit()
	ended, err := run(working, task, seen.note)
	if err != nil {
		return nil, err
	}
	warm := seen.count() + task.Jobs
	if err := waitUntil(ctx, func() (bool, error) { return seen.count() >= warm, nil }); err != nil {
		return nil, fmt.Errorf("first fires: %w", err)
	}
	before, after := seen.count(), 0
	took, used, err := measured(task, func() (time.Duration, error) {
		begun := time.Now()
		time.Sleep(time.Duration(task.Seconds * float64(time.Second)))
		after = seen.count()
		return time.Since(begun), nil
	})
	quit()
	if err = errors.Join(err, ended()); err != nil {
		return nil, err
	}
	jobs := after - before
	if jobs == 0 {
		return nil, errors.New("no schedule has fired")
	}
	result := percentiles(seen.late[before:after])
	used.into(result, jobs, task)
	result[WorkRate] = float64(jobs) / took.Seconds()
	result[Started] = float64(jobs) / (float64(task.Jobs) * took.Seconds() / fireEvery(task).Seconds())
	return result, nil
}

func runSluiceFires(ctx context.Context, task Task, note func(time.Time)) (ended func() error, err error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, err
	}
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := client.EnsureQueue(ctx, parcels.Name(), sluice.DefaultSettings(), sluice.Act{By: "bench"}); err != nil {
		return nil, err
	}
	payload, err := parcels.NewJob(newParcel(), sluice.EnqueueOptions{})
	if err != nil {
		return nil, err
	}
	all := make([]schedule.Schedule, task.Jobs)
	for i := range all {
		all[i] = schedule.Schedule{Name: fmt.Sprint("s", i), Definition: schedule.Definition{
			Queue: parcels.Name(), Every: fireEvery(task), Payload: payload.Payload, Overlap: schedule.QueueAll,
		}}
	}
	w := worker.New(store, worker.Options{Slots: task.Slots})
	worker.Handle(w, parcels, func(_ context.Context, job *worker.Job[Parcel]) error {
		note(job.ID.Time()) // the instant of the fire; DueAt is when upkeep made the job
		return nil
	}, worker.QueueOptions{})
	errs := make(chan error, 2)
	go func() { errs <- w.Run(ctx) }()
	go func() { errs <- upkeep.New(store, upkeep.Options{}).Run(ctx) }() // before the schedules, so that no fires wait for it
	if _, err := schedule.Ensure(ctx, store, all, sluice.Act{By: "bench"}); err != nil {
		return nil, fmt.Errorf("schedules: %w", err)
	}
	if err := addSleeping(ctx, task); err != nil {
		return nil, fmt.Errorf("schedules of another day: %w", err)
	}
	return func() error { return errors.Join(<-errs, <-errs, store.Close()) }, nil
}

// sleepingSQL adds schedules like the first one, which fire from tomorrow on.
const sleepingSQL = `insert into sluice.schedule (name, queue, version, next_at, definition, progress, changed_at, changed_by, reason)
	select 'sleeping' || n, queue, version, now() + interval '1 day' + n * interval '1 second', definition, progress, changed_at, changed_by, reason
	from (select * from sluice.schedule order by name limit 1) s, generate_series(1, $1) n`

// addSleeping stores task.Ahead further schedules.
func addSleeping(ctx context.Context, task Task) error {
	if task.Ahead == 0 {
		return nil
	}
	db, err := openDatabase(task)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, sleepingSQL, task.Ahead)
	return err
}

// firedWorker is River's worker of periodic jobs.
type firedWorker struct {
	river.WorkerDefaults[Parcel]
	note func(time.Time)
}

func (w *firedWorker) Work(_ context.Context, job *river.Job[Parcel]) error {
	w.note(job.ScheduledAt)
	return nil
}

func runRiverFires(ctx context.Context, task Task, note func(time.Time)) (ended func() error, err error) {
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
	config := &river.Config{Workers: river.NewWorkers(), Logger: quietLogger(), Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: task.Slots}}}
	config.FetchCooldown, config.FetchPollInterval = time.Millisecond, 5*time.Millisecond
	river.AddWorker(config.Workers, &firedWorker{note: note})
	for range task.Jobs {
		config.PeriodicJobs = append(config.PeriodicJobs, river.NewPeriodicJob(river.PeriodicInterval(fireEvery(task)), func() (river.JobArgs, *river.InsertOpts) { return newParcel(), nil }, nil))
	}
	client, err := river.NewClient[pgx.Tx](riverpgxv5.New(pool), config)
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	return func() error {
		defer pool.Close()
		return client.Stop(context.WithoutCancel(ctx))
	}, nil
}
