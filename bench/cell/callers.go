package cell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// measureCallers times many callers, each of which stores single jobs in a loop.
func measureCallers(ctx context.Context, task Task) (Result, error) {
	q, err := open(ctx, task, func(Parcel) {})
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	sender, can := q.(producer)
	if !can {
		return nil, fmt.Errorf("%s cannot store one job", task.System)
	}
	for range warmUp {
		if err := sender.enqueueOne(ctx, newParcel()); err != nil {
			return nil, fmt.Errorf("enqueue: %w", err)
		}
	}
	before, err := usedCPU(task.ServerPID)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	took, err := callAll(ctx, sender, task)
	if err != nil {
		return nil, err
	}
	elapsed := time.Since(begun)
	after, err := usedCPU(task.ServerPID)
	if err != nil {
		return nil, err
	}
	result := percentiles(took)
	result[EnqueueRate] = float64(len(took)) / elapsed.Seconds()
	after.minus(before).into(result, len(took), task)
	return result, q.stop(ctx)
}

// callAll runs the callers for task.Seconds and returns the time of each call, in milliseconds.
func callAll(ctx context.Context, q producer, task Task) ([]float64, error) {
	until := time.Now().Add(time.Duration(task.Seconds * float64(time.Second)))
	took := make([][]float64, task.Callers)
	errs := make([]error, task.Callers)
	var callers sync.WaitGroup
	for i := range task.Callers {
		callers.Go(func() {
			for now := time.Now(); now.Before(until); now = time.Now() {
				if errs[i] = q.enqueueOne(ctx, newParcel()); errs[i] != nil {
					return
				}
				took[i] = append(took[i], millis(time.Since(now)))
			}
		})
	}
	callers.Wait()
	var all []float64
	for _, some := range took {
		all = append(all, some...)
	}
	return all, errors.Join(errs...)
}
