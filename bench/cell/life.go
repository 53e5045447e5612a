package cell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/upkeep"
)

// The ways to wait for Temporal, besides Sluice.
const (
	// Sleeping payments are workflows that sleep until the due instant.
	Sleeping = "sleeping"
	// Delayed payments are workflows started with a delay.
	Delayed = "delayed"
)

const (
	// paid is the task queue of the payments, and the name of their workflow and activity.
	paid = "payments"
	// probed is the task queue and name of an unrelated workflow, which starts every probeEvery.
	probed     = "probes"
	probeEvery = 200 * time.Millisecond
	// quietTime is the time of probes beside nothing, for comparison.
	quietTime = 20 * time.Second
	// afterwards is the wait after the last payment, for work still going on.
	afterwards = 3 * time.Second
	// rest is half of the margin between set-up and due instant. All payments must be waiting rest/2 before the
	// instant.
	rest = 5 * time.Second
)

// setUp stores the payments of one way to wait. Each payment may take at most each.
type setUp struct {
	each  time.Duration
	store func(ctx context.Context, l *life, due time.Time) error
}

var setUps = map[string]setUp{
	Sleeping: {50 * time.Millisecond, sleepers},
	Delayed:  {15 * time.Millisecond, delayed},
	Sluice:   {time.Second / slowestFill, queued},
}

// life is a cell of payments that wait, then all fall due at one instant.
type life struct {
	task   Task
	client client.Client
	store  sluice.Store
	// asleep counts the sleeping payments, done the finished payments.
	asleep, done atomic.Int64
	first, last  atomic.Int64 // in ns since 1970
}

// measureLife measures payments from their storage to the last payment's end.
func measureLife(ctx context.Context, task Task) (Result, error) {
	how, known := setUps[task.System]
	if !known {
		return nil, fmt.Errorf("there is no way to wait called %q", task.System)
	}
	c, err := dialTemporal(task)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	l := &life{task: task, client: c}
	if l.store, err = openStore(ctx, task); err != nil {
		return nil, err
	}
	defer func() { _ = l.store.Close() }()
	stop, err := l.startWorkers()
	if err != nil {
		return nil, err
	}
	defer stop()
	return l.measure(ctx, how)
}

// startWorkers runs the workflows and activities of the payments and the probes.
func (l *life) startWorkers() (stop func(), err error) {
	pay := worker.New(l.client, paid, worker.Options{})
	pay.RegisterWorkflowWithOptions(l.sleepAndPay, workflow.RegisterOptions{Name: Sleeping})
	pay.RegisterWorkflowWithOptions(l.payNow, workflow.RegisterOptions{Name: paid})
	pay.RegisterActivity(l.makePayment)
	probe := worker.New(l.client, probed, worker.Options{})
	probe.RegisterWorkflowWithOptions(func(ctx workflow.Context) error { return activityOf(ctx, answerProbe) }, workflow.RegisterOptions{Name: probed})
	probe.RegisterActivity(answerProbe)
	if err := pay.Start(); err != nil {
		return nil, err
	}
	if err := probe.Start(); err != nil {
		pay.Stop()
		return nil, err
	}
	return func() { pay.Stop(); probe.Stop() }, nil
}

func answerProbe(context.Context) error { return nil }

func activityOf(ctx workflow.Context, activity any, args ...any) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	return workflow.ExecuteActivity(ctx, activity, args...).Get(ctx, nil)
}

// sleepAndPay is a payment that waits inside Temporal.
func (l *life) sleepAndPay(ctx workflow.Context, parcel Parcel) error {
	if !workflow.IsReplaying(ctx) {
		l.asleep.Add(1)
	}
	if err := workflow.Sleep(ctx, time.Unix(0, parcel.Sent).Sub(workflow.Now(ctx))); err != nil {
		return err
	}
	return l.payNow(ctx, parcel)
}

// payNow is a due payment, the same for all ways to wait.
func (l *life) payNow(ctx workflow.Context, parcel Parcel) error {
	return activityOf(ctx, l.makePayment, parcel)
}

func (l *life) makePayment(context.Context, Parcel) error {
	now := time.Now().UnixNano()
	l.first.CompareAndSwap(0, now)
	l.last.Store(now)
	l.done.Add(1)
	return nil
}

// measure runs probes beside nothing, stores the payments, and runs probes again from the due instant on.
func (l *life) measure(ctx context.Context, how setUp) (Result, error) {
	alone, perProbe, err := l.probesAlone(ctx)
	if err != nil {
		return nil, err
	}
	due := time.Now().Add(time.Duration(l.task.Jobs)*how.each + 2*rest)
	waiting, setUpCPU, err := l.measureWaiting(ctx, how, due)
	if err != nil {
		return nil, err
	}
	if time.Until(due) < rest/2 {
		return nil, fmt.Errorf("the payments fell due %s before all of them were waiting", time.Since(due.Add(-rest/2)).Round(time.Second))
	}
	waveCPU, probes, err := l.wave(ctx, due)
	if err != nil {
		return nil, err
	}
	result := percentiles(probes)
	for figure, value := range waiting {
		result[figure] = value
	}
	waveCPU -= time.Duration(len(probes)) * perProbe
	result[AloneP99] = alone
	result[WaitCPU] = perThousand(setUpCPU, l.task.Jobs)
	result[TotalCPU] = perThousand(setUpCPU+waveCPU, l.task.Jobs)
	result[FirstDone] = time.Unix(0, l.first.Load()).Sub(due).Seconds()
	result[Drain] = time.Unix(0, l.last.Load()).Sub(due).Seconds()
	return result, nil
}

// probesAlone returns the p99 of probes beside nothing in milliseconds, and the processor time of a probe.
func (l *life) probesAlone(ctx context.Context) (p99 float64, each time.Duration, err error) {
	var took []float64
	used, err := spentBy(l.task, func() (err error) {
		probing, quit := context.WithTimeout(ctx, quietTime)
		defer quit()
		took, err = l.probe(ctx, probing.Done())
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	return percentiles(took)[P99], used.all() / time.Duration(len(took)), nil
}

// measureWaiting stores the payments, and measures the cost and the footprint while they wait.
func (l *life) measureWaiting(ctx context.Context, how setUp, due time.Time) (Result, time.Duration, error) {
	ownBefore, engineBefore, err := l.footprints(ctx)
	if err != nil {
		return nil, 0, err
	}
	var took time.Duration
	used, err := spentBy(l.task, func() error {
		begun := time.Now()
		defer func() { took = time.Since(begun) }()
		return how.store(ctx, l, due)
	})
	if err != nil {
		return nil, 0, err
	}
	own, engine, err := l.footprints(ctx)
	if err != nil {
		return nil, 0, err
	}
	engine = engine.minus(engineBefore)
	all, n := engine.plus(own.minus(ownBefore)), float64(l.task.Jobs)
	return Result{
		EnqueueRate: n / took.Seconds(), EngineRows: float64(engine.rows) / n, Rows: float64(all.rows) / n,
		Bytes: float64(all.bytes) / n, WAL: float64(all.wal) / n,
	}, used.all(), nil
}

func (l *life) footprints(ctx context.Context) (own, engine footprint, err error) {
	if own, err = footprintOf(ctx, l.task.Place); err != nil {
		return own, engine, err
	}
	engine, err = engineFootprint(ctx, l.task)
	return own, engine, err
}

// wave waits for the due instant and the last payment. Results: the processor time, and the time of each probe since
// the due instant in milliseconds.
func (l *life) wave(ctx context.Context, due time.Time) (_ time.Duration, probes []float64, err error) {
	used, err := spentBy(l.task, func() (err error) {
		probes, err = l.pass(ctx, due)
		return err
	})
	return used.all(), probes, err
}

func (l *life) pass(ctx context.Context, due time.Time) (probes []float64, err error) {
	stop, err := l.startDispatch(ctx)
	if err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Until(due)):
	}
	over := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		defer close(over)
		failed <- waitUntil(ctx, func() (bool, error) { return l.done.Load() >= int64(l.task.Jobs), nil })
	}()
	probes, err = l.probe(ctx, over)
	if err := errors.Join(err, <-failed); err != nil {
		return nil, fmt.Errorf("after %d of %d payments: %w", l.done.Load(), l.task.Jobs, err)
	}
	time.Sleep(afterwards)
	return probes, stop()
}

// startDispatch runs a dispatcher and upkeep if Sluice takes part. Function stop waits until upkeep has followed all
// runs to their end, then stops both.
func (l *life) startDispatch(ctx context.Context) (stop func() error, err error) {
	if l.task.System != Sluice {
		return func() error { return nil }, nil
	}
	look, err := openLook(ctx, l.task)
	if err != nil {
		return nil, err
	}
	running, quit := context.WithCancel(ctx)
	engines := map[string]engine.Engine{engineName: temporal.New(l.client, temporal.Options{})}
	ended := make(chan error, 2)
	go func() { ended <- dispatcher.New(l.store, dispatcher.Options{Engines: engines}).Run(running) }()
	go func() { ended <- upkeep.New(l.store, upkeep.Options{Engines: engines}).Run(running) }()
	return func() error {
		defer quit()
		err := waitUntil(ctx, func() (bool, error) {
			left, err := look.unfinished(ctx)
			return !left, err
		})
		quit()
		return errors.Join(err, <-ended, <-ended, look.db.Close())
	}, nil
}

// probe starts an unrelated workflow every probeEvery until stop, and returns the time of each in milliseconds.
func (l *life) probe(ctx context.Context, stop <-chan struct{}) ([]float64, error) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	var probes sync.WaitGroup
	var mu sync.Mutex
	var took []float64
	var failed error
	for {
		probes.Go(func() {
			begun := time.Now()
			run, err := l.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: probed}, probed)
			if err == nil {
				err = run.Get(ctx, nil)
			}
			mu.Lock()
			defer mu.Unlock()
			took, failed = append(took, millis(time.Since(begun))), errors.Join(failed, err)
		})
		select {
		case <-stop:
			probes.Wait()
			return took, failed
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticker.C:
		}
	}
}

// startsAtOnce is the number of starts in flight while payments are stored in Temporal.
const startsAtOnce = 16

// sleepers starts payments that sleep, and waits until all sleep.
func sleepers(ctx context.Context, l *life, due time.Time) error {
	err := startEach(ctx, startsAtOnce, l.task.Jobs, func(ctx context.Context, i int) error {
		return l.startPayment(ctx, i, client.StartWorkflowOptions{}, Sleeping, due)
	})
	if err != nil {
		return err
	}
	return waitUntil(ctx, func() (bool, error) {
		if time.Until(due) < 0 {
			return false, fmt.Errorf("%d of %d were asleep when they fell due", l.asleep.Load(), l.task.Jobs)
		}
		return l.asleep.Load() >= int64(l.task.Jobs), nil
	})
}

// delayed starts payments that Temporal itself holds back.
func delayed(ctx context.Context, l *life, due time.Time) error {
	return startEach(ctx, startsAtOnce, l.task.Jobs, func(ctx context.Context, i int) error {
		return l.startPayment(ctx, i, client.StartWorkflowOptions{StartDelay: time.Until(due)}, paid, due)
	})
}

func (l *life) startPayment(ctx context.Context, i int, options client.StartWorkflowOptions, kind string, due time.Time) error {
	options.ID, options.TaskQueue = fmt.Sprintf("payment-%d", i), paid
	parcel := newParcel()
	parcel.Sent = due.UnixNano()
	_, err := l.client.ExecuteWorkflow(ctx, options, kind, parcel)
	return err
}

// queued stores payments as jobs of a queue with a rate.
func queued(ctx context.Context, l *life, due time.Time) error {
	settings := sluice.DefaultSettings()
	settings.Engine, settings.RunTaskQueue, settings.RunType = engineName, paid, paid
	settings.Rate, settings.Burst = sluice.Rate{Jobs: l.task.Rate, Per: time.Second}, l.task.Rate
	return storeJobs(ctx, l.store, settings, l.task.Jobs, func(int) sluice.EnqueueOptions { return sluice.EnqueueOptions{DueAt: due} })
}
