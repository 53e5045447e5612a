package cell

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/bench/stat"
)

const (
	// warmUp is the number of unmeasured first jobs, which open connections and prepare statements.
	warmUp = 20
	// idle is the wait between the worker's start and the first job.
	idle = 2 * time.Second
)

// producer is a system that can store one job.
type producer interface {
	queue
	enqueueOne(ctx context.Context, parcel Parcel) error
}

// arrivals collects the time of each parcel from just before its enqueue to its handler. The machine's clock allows the
// two ends in different processes.
type arrivals struct {
	mu   sync.Mutex
	took []float64 // in milliseconds
}

func (a *arrivals) note(parcel Parcel) {
	took := time.Now().UnixNano() - parcel.Sent
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took = append(a.took, millis(time.Duration(took)))
}

func (a *arrivals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.took)
}

// wait waits for n parcels after the warm-up, at most a minute, and returns their percentiles.
func (a *arrivals) wait(ctx context.Context, n int) (Result, error) {
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := waitUntil(limited, func() (bool, error) { return a.count() >= warmUp+n, nil }); err != nil {
		return nil, fmt.Errorf("%d of %d jobs arrived: %w", a.count(), warmUp+n, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return percentiles(a.took[warmUp:]), nil
}

func percentiles(values []float64) Result {
	return Result{
		P50: stat.Percentile(values, 50), P95: stat.Percentile(values, 95), P99: stat.Percentile(values, 99),
		Worst: stat.Percentile(values, 100),
	}
}

// measureLatency stores a job every task.EveryMillis for an idle worker.
func measureLatency(ctx context.Context, task Task) (Result, error) {
	var seen arrivals
	q, err := open(ctx, task, seen.note)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	sender, can := q.(producer)
	if !can {
		return nil, fmt.Errorf("%s cannot store one job", task.System)
	}
	arrived := func() (Result, error) { return seen.wait(ctx, task.Jobs) }
	if task.System == SluiceAcross {
		other, err := startOther(ctx, task)
		if err != nil {
			return nil, err
		}
		defer other.Stop()
		arrived = other.Next
	} else {
		if err := q.start(ctx); err != nil {
			return nil, err
		}
		time.Sleep(idle)
	}
	if err := send(ctx, sender, task); err != nil {
		return nil, err
	}
	result, err := arrived()
	if err != nil {
		return nil, err
	}
	return result, q.stop(ctx)
}

func send(ctx context.Context, q producer, task Task) error {
	ticker := time.NewTicker(time.Duration(task.EveryMillis) * time.Millisecond)
	defer ticker.Stop()
	for range warmUp + task.Jobs {
		<-ticker.C
		parcel := newParcel()
		parcel.Sent = time.Now().UnixNano()
		if err := q.enqueueOne(ctx, parcel); err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
	}
	return nil
}

// startOther starts the worker's process, and waits until the worker is ready.
func startOther(ctx context.Context, task Task) (*Process, error) {
	task.Kind = LatencyWorker
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	other, err := Start(ctx, program, os.Args[1:], task)
	if err != nil {
		return nil, err
	}
	if _, err := other.Next(); err != nil {
		other.Stop()
		return nil, fmt.Errorf("the worker's process: %w", err)
	}
	return other, nil
}

// serveLatency is the worker's process, and writes an empty result when the worker is ready.
func serveLatency(ctx context.Context, task Task) (Result, error) {
	var seen arrivals
	q, err := open(ctx, task, seen.note)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if err := q.start(ctx); err != nil {
		return nil, err
	}
	time.Sleep(idle)
	if err := say(Result{}); err != nil {
		return nil, err
	}
	everything, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if err := waitUntil(everything, func() (bool, error) { return seen.count() > 0, nil }); err != nil {
		return nil, err
	}
	sending := time.Duration((warmUp+task.Jobs)*task.EveryMillis) * time.Millisecond
	time.Sleep(sending)
	result, err := seen.wait(ctx, task.Jobs)
	if err != nil {
		return nil, err
	}
	return result, q.stop(ctx)
}
