package cell

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/temporal"
)

// TemporalServer is a Temporal server with its PostgreSQL cluster.
type TemporalServer struct {
	// Address is host:port, PID the process ID.
	Address string
	PID     int
	// Place is the URL of its database. The visibility store's database has the same name plus `_visibility`.
	Place string
	// ServerPID is the first process of its PostgreSQL cluster.
	ServerPID int
}

const (
	// engineName is the queues' name for the Temporal server.
	engineName = "temporal"
	// unserved is a task queue that no worker polls.
	unserved = "unserved"
)

// dialTemporal connects to a cell's Temporal server. The client logs only warnings and errors.
func dialTemporal(task Task) (client.Client, error) {
	return client.Dial(client.Options{HostPort: task.Temporal.Address, Logger: log.NewStructuredLogger(slog.Default())})
}

// spent is the processor time of a cell with a Temporal server: this process, Sluice's store, and Temporal with its
// store.
type spent struct {
	cpu
	engine time.Duration
}

func (s spent) minus(before spent) spent {
	return spent{s.cpu.minus(before.cpu), s.engine - before.engine}
}
func (s spent) plus(more spent) spent { return spent{s.cpu.plus(more.cpu), s.engine + more.engine} }
func (s spent) all() time.Duration    { return s.client + s.server + s.engine }

func usedByAll(task Task) (out spent, err error) {
	if out.cpu, err = usedCPU(task.ServerPID); err != nil {
		return out, err
	}
	for _, pid := range []int{task.Temporal.PID, task.Temporal.ServerPID} {
		used, err := serverCPU(pid)
		if err != nil {
			return out, err
		}
		out.engine += used
	}
	return out, nil
}

// spentBy runs a phase and returns the processor time of all processes during it.
func spentBy(task Task, phase func() error) (spent, error) {
	before, err := usedByAll(task)
	if err != nil {
		return spent{}, err
	}
	if err := phase(); err != nil {
		return spent{}, err
	}
	after, err := usedByAll(task)
	return after.minus(before), err
}

// turns is the number of turns of each starter in a cell. The machine's speed changes within seconds, so only turns of
// the same cell are comparable.
const turns = 4

// Flights lists the numbers of calls in flight of the plain client.
var Flights = []int{8, 16, 32}

// starter is one way to start workflows that nobody runs, with the sum of its turns.
type starter struct {
	prepare func(ctx context.Context) error // not measured; nil: none
	start   func(ctx context.Context) (time.Duration, error)
	took    time.Duration
	used    spent
}

// measureStarts compares Sluice with the plain client, which start workflows in turns on the same server.
func measureStarts(ctx context.Context, task Task) (Result, error) {
	c, err := dialTemporal(task)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = store.Close() }()
	ours := &starter{
		prepare: func(ctx context.Context) error { return storeRuns(ctx, store, task.Jobs) },
		start:   func(ctx context.Context) (time.Duration, error) { return dispatchAll(ctx, store, task, c) },
	}
	starters := []*starter{ours}
	for _, flights := range Flights {
		starters = append(starters, &starter{start: func(ctx context.Context) (time.Duration, error) {
			return startPlainly(ctx, c, flights, task.Jobs)
		}})
	}
	for turn := range turns {
		for k := range starters {
			if err := starters[(turn+k)%len(starters)].take(ctx, task); err != nil {
				return nil, err
			}
		}
	}
	return startsResult(task, ours, starters[1:]), nil
}

// take runs one turn.
func (s *starter) take(ctx context.Context, task Task) error {
	if s.prepare != nil {
		if err := s.prepare(ctx); err != nil {
			return err
		}
	}
	used, err := spentBy(task, func() error {
		took, err := s.start(ctx)
		s.took += took
		return err
	})
	s.used = s.used.plus(used)
	return err
}

// startsResult returns the figures of Sluice, and of the plain client for each of [Flights].
func startsResult(task Task, ours *starter, plain []*starter) Result {
	n := turns * task.Jobs
	result := Result{
		StartRate: rate(n, ours.took), ClientCPU: perThousand(ours.used.client, n),
		ServerCPU: perThousand(ours.used.server, n), EngineCPU: perThousand(ours.used.engine, n),
	}
	for k, s := range plain {
		result[PlainEngine] += perThousand(s.used.engine, n) / float64(len(plain))
		result[PlainRate(Flights[k])] = rate(n, s.took)
		result[PlainCPU] += perThousand(s.used.client, n) / float64(len(plain))
	}
	return result
}

func rate(n int, took time.Duration) float64 { return float64(n) / took.Seconds() }

// startPlainly starts n workflows with the plain client, atOnce calls in flight.
func startPlainly(ctx context.Context, c client.Client, atOnce, n int) (time.Duration, error) {
	begun := time.Now()
	err := startEach(ctx, atOnce, n, func(ctx context.Context, _ int) error {
		id := "plain-" + sluice.NewID().String()
		_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: unserved}, "parcel", newParcel())
		return err
	})
	return time.Since(begun), err
}

// startEach makes n calls, numbered from 1, atOnce in flight. The first error ends it.
func startEach(ctx context.Context, atOnce, n int, call func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var callers sync.WaitGroup
	for range atOnce {
		callers.Go(func() {
			for i := next.Add(1); i <= int64(n) && ctx.Err() == nil; i = next.Add(1) {
				if err := call(ctx, int(i)); err != nil {
					cancel(fmt.Errorf("start %d of %d: %w", i, n, err))
				}
			}
		})
	}
	callers.Wait()
	return context.Cause(ctx)
}

// storeRuns stores jobs of a queue whose engine is the Temporal server.
func storeRuns(ctx context.Context, store sluice.Store, n int) error {
	settings := sluice.DefaultSettings()
	settings.Engine, settings.RunTaskQueue = engineName, unserved
	return storeJobs(ctx, store, settings, n, nil)
}

// storeJobs creates the queue with settings, and stores n jobs.
func storeJobs(ctx context.Context, store sluice.Store, settings sluice.Settings, n int, options func(int) sluice.EnqueueOptions) error {
	queue := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := queue.EnsureQueue(ctx, parcels.Name(), settings, sluice.Act{By: "bench"}); err != nil {
		return err
	}
	return fill(ctx, queue, n, options)
}

// dispatchAll runs a dispatcher until every job is dispatched.
func dispatchAll(ctx context.Context, store sluice.Store, task Task, c client.Client) (time.Duration, error) {
	look, err := openLook(ctx, task)
	if err != nil {
		return 0, err
	}
	defer func() { _ = look.db.Close() }()
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	engines := map[string]engine.Engine{engineName: temporal.New(c, temporal.Options{})}
	ended := make(chan error, 1)
	begun := time.Now()
	go func() { ended <- dispatcher.New(store, dispatcher.Options{Engines: engines}).Run(ctx) }()
	if err := waitUntil(ctx, func() (bool, error) {
		time.Sleep(10 * lookEvery) // a query costs the store as much as a start
		return look.dispatched(ctx)
	}); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	quit()
	return took, <-ended
}

// perThousand returns processor time in milliseconds per 1,000 jobs.
func perThousand(used time.Duration, jobs int) float64 { return millis(used) * 1000 / float64(jobs) }
