package cell

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

const (
	// slowestFill is the slowest rate of enqueues, in jobs per second.
	slowestFill = 8000
	// settleTime is the planned time between the last enqueue and the due instant.
	settleTime = 3 * time.Second
)

// measureWave stores jobs that are all due at one instant, and compares their starts with the plan: each job starts
// when the rate has a token for it.
func measureWave(ctx context.Context, task Task) (Result, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = store.Close() }()
	client := sluice.NewClient(store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Rate = sluice.Rate{Jobs: task.Rate, Per: time.Second}
	if _, err := client.EnsureQueue(ctx, parcels.Name(), settings, sluice.Act{By: "bench"}); err != nil {
		return nil, err
	}
	due := time.Now().Add(time.Duration(task.Jobs)*time.Second/slowestFill + settleTime)
	if err := fill(ctx, client, task.Jobs, func(int) sluice.EnqueueOptions { return sluice.EnqueueOptions{DueAt: due} }); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	if err := tidy(ctx, task); err != nil {
		return nil, err
	}
	if time.Until(due) < 0 {
		return nil, errors.New("the jobs fell due before all of them were stored")
	}
	starts, err := startsOf(ctx, store, task)
	if err != nil {
		return nil, err
	}
	return waveResult(task, starts)
}

// startsOf runs a worker until every job has started, and returns the times of the starts.
func startsOf(ctx context.Context, store sluice.Store, task Task) ([]time.Time, error) {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	var mu sync.Mutex
	starts := make([]time.Time, 0, task.Jobs)
	w := worker.New(store, worker.Options{Slots: task.Slots})
	worker.Handle(w, parcels, func(context.Context, *worker.Job[Parcel]) error {
		mu.Lock()
		defer mu.Unlock()
		if starts = append(starts, time.Now()); len(starts) == task.Jobs {
			quit()
		}
		return nil
	}, worker.QueueOptions{})
	ended := make(chan error, 1)
	go func() { ended <- upkeep.New(store, upkeep.Options{}).Run(ctx) }()
	if err := w.Run(ctx); err != nil {
		return nil, err
	}
	return starts, <-ended
}

func waveResult(task Task, starts []time.Time) (Result, error) {
	if len(starts) != task.Jobs {
		return nil, fmt.Errorf("%d of %d jobs started", len(starts), task.Jobs)
	}
	slices.SortFunc(starts, time.Time.Compare)
	begun := starts[0]
	late := make([]float64, len(starts))
	for i, at := range starts {
		plan := time.Duration(i) * time.Second / time.Duration(task.Rate)
		late[i] = max(0, millis(at.Sub(begun)-plan))
	}
	planned := time.Duration(task.Jobs-1) * time.Second / time.Duration(task.Rate)
	result := percentiles(late)
	result[Span] = float64(starts[len(starts)-1].Sub(begun)) / float64(planned)
	held, err := peakMemory()
	result[Memory] = held
	return result, err
}

// measureLooks times explain.Job beside many waiting jobs.
func measureLooks(ctx context.Context, task Task) (Result, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = store.Close() }()
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if err := setLimits(ctx, client, task); err != nil {
		return nil, err
	}
	if err := fillAudit(ctx, task); err != nil {
		return nil, err
	}
	if err := fill(ctx, client, task.Due, ofTenants(task.Tenants)); err != nil {
		return nil, err
	}
	if err := tidy(ctx, task); err != nil {
		return nil, err
	}
	page, err := client.Jobs(ctx, sluice.JobFilter{Queue: parcels.Name(), Limit: task.Jobs})
	if err != nil {
		return nil, err
	}
	took := make([]float64, 0, len(page.Jobs))
	for _, job := range page.Jobs {
		begun := time.Now()
		if _, err := explain.Job(ctx, store, job.ID); err != nil {
			return nil, err
		}
		took = append(took, millis(time.Since(begun)))
	}
	return percentiles(took), nil
}
