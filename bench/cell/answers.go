package cell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// measureAnswers lets a caller wait for each job of task.Jobs and task.Ahead, works them off at task.Rate through a store of its own,
// and measures the time from the end of a job, by the store's clock, to its caller's answer. Those of the first second warm up.
// So at least task.Ahead callers wait all the time.
func measureAnswers(ctx context.Context, task Task) (result Result, err error) {
	asking, err := openStore(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { err = errors.Join(err, asking.Close()) }()
	client := sluice.NewClient(asking, sluice.ClientOptions{})
	if err := pausedQueue(ctx, client, task); err != nil {
		return nil, err
	}
	working, quit := context.WithCancel(ctx)
	defer quit()
	ended, err := workAside(working, task)
	if err != nil {
		return nil, err
	}
	ids, err := fillAwaited(ctx, client, task)
	if err != nil {
		return nil, err
	}
	var seen lateness
	waiting, leave := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer leave()
	waiter := await.New(asking)
	for _, id := range ids {
		all.Go(func() {
			if end, err := waiter.Wait(waiting, id); err == nil {
				seen.note(end.FinishedAt)
			}
		})
	}
	time.Sleep(idle) // the store is asked for all jobs
	if err := client.Resume(ctx, parcels.Name(), sluice.Act{By: "bench"}); err != nil {
		return nil, err
	}
	reached := func(n int) error {
		return waitUntil(ctx, func() (bool, error) { return seen.count() >= n, nil })
	}
	if err := reached(task.Rate); err != nil {
		return nil, err
	}
	took, used, err := measured(task, func() (time.Duration, error) {
		begun := time.Now()
		err := reached(task.Rate + task.Jobs)
		return time.Since(begun), err
	})
	quit()
	if err := errors.Join(err, ended()); err != nil {
		return nil, err
	}
	answers := seen.late[task.Rate : task.Rate+task.Jobs]
	result = percentiles(answers)
	used.into(result, task.Jobs, task)
	for _, late := range answers {
		if late <= 20 {
			result[Prompt] += 1 / float64(task.Jobs)
		}
	}
	result[WorkRate] = float64(task.Jobs) / took.Seconds()
	return result, nil
}

// pausedQueue makes the queue, with a rate, and pauses it.
func pausedQueue(ctx context.Context, client *sluice.Client, task Task) error {
	settings := sluice.DefaultSettings()
	settings.Rate = sluice.Rate{Jobs: task.Rate, Per: time.Second}
	act := sluice.Act{By: "bench", Reason: "until all callers wait"}
	if _, err := client.EnsureQueue(ctx, parcels.Name(), settings, act); err != nil {
		return err
	}
	return client.Pause(ctx, parcels.Name(), act)
}

// fillAwaited stores the jobs, and returns their IDs.
func fillAwaited(ctx context.Context, client *sluice.Client, task Task) ([]sluice.ID, error) {
	ids := make([]sluice.ID, task.Rate+task.Jobs+task.Ahead)
	err := fill(ctx, client, len(ids), func(i int) sluice.EnqueueOptions {
		ids[i] = sluice.NewID()
		return sluice.EnqueueOptions{ID: ids[i]}
	})
	if err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	return ids, tidy(ctx, task)
}

// workAside runs a worker and upkeep on a store of their own, as in another process.
func workAside(ctx context.Context, task Task) (ended func() error, err error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open for the worker: %w", err)
	}
	w := worker.New(store, worker.Options{Slots: task.Slots})
	worker.Handle(w, parcels, func(_ context.Context, job *worker.Job[Parcel]) error {
		return job.SetResult(len(job.Payload.P))
	}, worker.QueueOptions{})
	errs := make(chan error, 2)
	go func() { errs <- w.Run(ctx) }()
	go func() { errs <- upkeep.New(store, upkeep.Options{}).Run(ctx) }()
	return func() error { return errors.Join(<-errs, <-errs, store.Close()) }, nil
}
