package cell

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// pruneRest is the rest between two passes of pruning; pruneLook is the interval of checks of the history's age.
const (
	pruneRest = 200 * time.Millisecond
	pruneLook = 500 * time.Millisecond
)

// oldestSQL returns the milliseconds since the oldest finished job ended.
var oldestSQL = map[string]string{
	Postgres: "select coalesce(extract(epoch from now() - (select min(finished_at) from sluice.done where queue = $1 and outcome = 'completed' and requeued_at is null)) * 1000, 0)::double precision",
	SQLite:   "select coalesce(unixepoch('subsec') * 1000 - (select min(finished_at) from sluice_done where queue = ?1 and outcome = 'completed' and requeued_at is null) / 1000.0, 0)",
}

// measurePrune stores jobs at a rate and works them off, while upkeep deletes old finished jobs.
func measurePrune(ctx context.Context, task Task) (Result, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = store.Close() }()
	client := sluice.NewClient(store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.KeepCompleted = time.Duration(task.KeepSeconds * float64(time.Second)) // 0: for ever
	if _, err := client.EnsureQueue(ctx, parcels.Name(), settings, sluice.Act{By: "bench"}); err != nil {
		return nil, err
	}
	var worst float64
	took, used, err := measured(task, func() (time.Duration, error) {
		begun := time.Now()
		worst, err = pruneBesideWork(ctx, store, client, task)
		return time.Since(begun), err
	})
	if err != nil {
		return nil, err
	}
	per1000 := func(d time.Duration) float64 { return millis(d) * 1000 / float64(task.Jobs) }
	result := Result{
		WholeRate: float64(task.Jobs) / took.Seconds(),
		ClientCPU: per1000(used.client), TotalCPU: per1000(used.client + used.server),
	}
	if keep := task.KeepSeconds * 1000; keep > 0 {
		result[Overdue] = max(0, worst-keep)
	}
	if task.ServerPID != 0 {
		result[ServerCPU] = per1000(used.server)
	}
	return result, nil
}

// pruneBesideWork works off the jobs, and returns the greatest age of a finished job in milliseconds.
func pruneBesideWork(ctx context.Context, store sluice.Store, client *sluice.Client, task Task) (worst float64, err error) {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	var handled atomic.Int64
	w := worker.New(store, worker.Options{Slots: task.Slots})
	worker.Handle(w, parcels, func(context.Context, *worker.Job[Parcel]) error {
		handled.Add(1)
		return nil
	}, worker.QueueOptions{})
	ended := make(chan error, 3)
	go func() { ended <- w.Run(ctx) }()
	go func() {
		ended <- upkeep.New(store, upkeep.Options{Interval: pruneRest, PruneInterval: pruneRest}).Run(ctx)
	}()
	go func() {
		var err error
		worst, err = watchHistory(ctx, task)
		ended <- err
	}()
	begun := time.Now()
	for sent := 0; sent < task.Jobs && err == nil; sent += batch {
		time.Sleep(time.Until(begun.Add(time.Duration(sent) * time.Second / time.Duration(task.Rate))))
		err = fill(ctx, client, min(batch, task.Jobs-sent), nil)
	}
	if err == nil {
		err = waitUntil(ctx, func() (bool, error) { return handled.Load() >= int64(task.Jobs), nil })
	}
	quit()
	for range 3 {
		if failed := <-ended; err == nil {
			err = failed
		}
	}
	return worst, err
}

// watchHistory reads the age of the oldest finished job until ctx ends, and returns the greatest age in milliseconds.
func watchHistory(ctx context.Context, task Task) (worst float64, err error) {
	db, err := openDatabase(task)
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	for {
		select {
		case <-ctx.Done():
			return worst, nil
		case <-time.After(pruneLook):
		}
		var age float64
		if err := db.QueryRowContext(ctx, oldestSQL[task.Store], parcels.Name()).Scan(&age); err != nil && ctx.Err() == nil {
			return 0, err
		}
		worst = max(worst, age)
	}
}
