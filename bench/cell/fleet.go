package cell

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/worker"
)

const (
	// fleetSettle is the time before the warm-up. By then, all workers have started and connected.
	fleetSettle = 12 * time.Second
	// fleetTail bounds the wait for the last jobs to begin.
	fleetTail = 10 * time.Second
	// fleetConnections bounds the connections of each store.
	fleetConnections = 4
)

// fleet is a set of workers, each with its own store, as in separate processes.
type fleet struct {
	task   Task
	stores []sluice.Store
	ended  chan error
	quit   context.CancelFunc

	running int // workers

	mu   sync.Mutex
	took []float64 // from enqueue to start, in milliseconds
}

// measureFleet runs many workers of many queues, with few jobs or none, and measures the cost and the time from enqueue
// to start.
func measureFleet(ctx context.Context, task Task) (_ Result, err error) {
	f := &fleet{task: task, ended: make(chan error, task.Processes)}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := countStatements(ctx, task); err != nil {
		return nil, fmt.Errorf("count statements: %w", err)
	}
	if err := f.start(ctx); err != nil {
		return nil, err
	}
	time.Sleep(fleetSettle)
	if err := f.warmUp(ctx); err != nil {
		return nil, err
	}
	sent := 0
	before, err := statements(ctx, task)
	if err != nil {
		return nil, err
	}
	took, used, err := measured(task, func() (time.Duration, error) {
		begun := time.Now()
		var err error
		sent, err = f.send(ctx)
		return time.Since(begun), err
	})
	if err != nil {
		return nil, err
	}
	after, err := statements(ctx, task)
	if err != nil {
		return nil, err
	}
	f.await(sent)
	return f.result(sent, took, used, after-before), nil
}

func (f *fleet) result(sent int, took time.Duration, used cpu, statements float64) Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	result := Result{
		Statements: statements / took.Seconds(), ServerCores: used.server.Seconds() / took.Seconds(), ClientCores: used.client.Seconds() / took.Seconds(),
	}
	if sent == 0 {
		return result
	}
	result[Started] = float64(len(f.took)) / float64(sent)
	result[TotalCPU] = millis(used.client+used.server) * 1000 / float64(sent)
	result[ServerCPU] = millis(used.server) * 1000 / float64(sent)
	waits := f.took
	for len(waits) < sent { // a job that has not begun is later than all others
		waits = append(waits, math.Inf(1))
	}
	for figure, value := range percentiles(waits) {
		result[figure] = min(value, millis(took+fleetTail))
	}
	return result
}

func (f *fleet) start(ctx context.Context) error {
	ctx, f.quit = context.WithCancel(ctx)
	for range f.task.Processes {
		store, err := f.open(ctx)
		if err != nil {
			return err
		}
		f.stores = append(f.stores, store)
		if len(f.stores) == 1 {
			if err := f.fill(ctx); err != nil {
				return err
			}
		}
		w := worker.New(store, worker.Options{Slots: f.task.Slots})
		for n := range f.task.Queues {
			worker.Handle(w, sluice.QueueOf[Parcel](fleetQueue(n)), func(_ context.Context, job *worker.Job[Parcel]) error {
				f.note(job.Payload)
				return nil
			}, worker.QueueOptions{})
		}
		f.running++
		go func() { f.ended <- w.Run(ctx) }()
	}
	return nil
}

// fill stores the settings of every queue.
func (f *fleet) fill(ctx context.Context) error {
	client := sluice.NewClient(f.stores[0], sluice.ClientOptions{})
	queues, act := max(f.task.Queues, f.task.Stored), sluice.Act{By: "bench", Reason: "measure"}
	policy, err := admission.Of(ctx, f.stores[0])
	if err != nil {
		return err
	}
	if policy.MaxQueues = max(policy.MaxQueues, queues); policy.MaxQueues > admission.DefaultMaxQueues {
		if _, err := admission.Save(ctx, f.stores[0], policy, act); err != nil {
			return err
		}
	}
	for n := range queues {
		if _, err := client.EnsureQueue(ctx, fleetQueue(n), sluice.DefaultSettings(), act); err != nil {
			return fmt.Errorf("store queue %d: %w", n, err)
		}
	}
	return tidy(ctx, f.task)
}

func fleetQueue(n int) string { return fmt.Sprintf("queue-%05d", n) }

func (f *fleet) note(parcel Parcel) {
	took := millis(time.Duration(time.Now().UnixNano() - parcel.Sent))
	f.mu.Lock()
	defer f.mu.Unlock()
	f.took = append(f.took, took)
}

func (f *fleet) begun() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.took)
}

// await waits until sent jobs have begun, at most fleetTail.
func (f *fleet) await(sent int) {
	for end := time.Now().Add(fleetTail); f.begun() < sent && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
}

// warmUp sends unmeasured jobs for task.Seconds: each connection of a long-running process has claimed before.
func (f *fleet) warmUp(ctx context.Context) error {
	sent, err := f.send(ctx)
	if err != nil {
		return err
	}
	f.await(sent)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.took) < sent {
		return fmt.Errorf("%d of %d jobs began before the measuring", len(f.took), sent)
	}
	f.took = nil
	return nil
}

// send stores single jobs at task.Rate for task.Seconds and returns their number. On PostgreSQL, the jobs go through a
// store that no worker has.
func (f *fleet) send(ctx context.Context) (int, error) {
	length := time.Duration(f.task.Seconds * float64(time.Second))
	if f.task.Rate == 0 {
		time.Sleep(length)
		return 0, nil
	}
	store := f.stores[0]
	if f.task.Store == Postgres {
		var err error
		if store, err = openStore(ctx, f.task); err != nil {
			return 0, err
		}
		defer func() { _ = store.Close() }()
	}
	client := sluice.NewClient(store, sluice.ClientOptions{})
	jobs := int(f.task.Seconds * float64(f.task.Rate))
	begun := time.Now()
	failed := make(chan error, jobs)
	var sending sync.WaitGroup
	for n := range jobs {
		time.Sleep(time.Until(begun.Add(time.Duration(n) * time.Second / time.Duration(f.task.Rate))))
		sending.Go(func() { failed <- f.sendOne(ctx, client, n) })
	}
	sending.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return 0, fmt.Errorf("enqueue: %w", err)
		}
	}
	return jobs, nil
}

// sendOne stores job n. A prime stride spreads the jobs over the queues.
func (f *fleet) sendOne(ctx context.Context, client *sluice.Client, n int) error {
	parcel := newParcel()
	parcel.Sent = time.Now().UnixNano()
	_, err := sluice.QueueOf[Parcel](fleetQueue(n*7919%f.task.Queues)).Enqueue(ctx, client, parcel, sluice.EnqueueOptions{})
	return err
}

// close stops the workers and returns their errors.
func (f *fleet) close() (err error) {
	if f.quit != nil {
		f.quit()
	}
	for range f.running {
		err = errors.Join(err, <-f.ended)
	}
	for _, store := range f.stores {
		_ = store.Close()
	}
	return err
}

// countStatements makes the server count the statements of future connections.
func countStatements(ctx context.Context, task Task) error {
	if task.Store == SQLite {
		return nil
	}
	return onServer(ctx, task, func(conn *pgx.Conn) error {
		database := pgx.Identifier{conn.Config().Database}.Sanitize()
		_, err := conn.Exec(ctx, "create extension pg_stat_statements; alter database "+database+" set pg_stat_statements.track = 'top'")
		return err
	})
}

// statements returns the statements so far in the database; a batch counts each statement. On SQLite: 0.
func statements(ctx context.Context, task Task) (run float64, err error) {
	if task.Store == SQLite {
		return 0, nil
	}
	const text = "select coalesce(sum(s.calls), 0) from pg_stat_statements s join pg_database d on d.oid = s.dbid where d.datname = current_database()"
	err = onServer(ctx, task, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, text).Scan(&run) })
	return run, err
}

// open opens the store of one worker, with fleetConnections on PostgreSQL.
func (f *fleet) open(ctx context.Context) (sluice.Store, error) {
	task := f.task
	if task.Store == Postgres {
		task.Place = withQuery(task.Place, func(query url.Values) { query.Set("pool_max_conns", strconv.Itoa(fleetConnections)) })
	}
	return openStore(ctx, task)
}
