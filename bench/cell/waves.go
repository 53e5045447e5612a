package cell

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/bench/stat"
	"github.com/sluice-queue/sluice/forecast"
)

const (
	// waveTenants is the number of tenants of the waiting jobs.
	waveTenants = 1000
	// waveCapacity is each tenant's capacity, waveRun the assumed run time of a job.
	waveCapacity = 5
	waveRun      = 30 * time.Second
	// waveCounts is the number of timed counts.
	waveCounts = 5
)

// measureWaves times forecasts beside many waiting jobs, and the count of these jobs.
func measureWaves(ctx context.Context, task Task) (Result, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = store.Close() }()
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if err := fill(ctx, client, task.Ahead, spread(task.Ahead)); err != nil {
		return nil, fmt.Errorf("jobs that wait: %w", err)
	}
	if err := tidy(ctx, task); err != nil {
		return nil, err
	}
	_, err = client.ChangeSettings(ctx, parcels.Name(), sluice.Act{By: "bench"}, func(s *sluice.Settings) error {
		s.TenantConcurrency = waveCapacity
		return nil
	})
	if err != nil {
		return nil, err
	}
	counts := make([]float64, 0, waveCounts)
	for range waveCounts {
		begun := time.Now()
		count, err := forecast.Recount(ctx, store)
		if err != nil || count.Jobs != task.Ahead {
			return nil, fmt.Errorf("counted %d of %d jobs: %w", count.Jobs, task.Ahead, err)
		}
		counts = append(counts, millis(time.Since(begun)))
	}
	what := forecast.WhatIf{RunTime: waveRun}
	near, err := timeForecasts(ctx, store, task.Jobs, forecast.Request{Queue: parcels.Name(), WhatIf: what})
	if err != nil {
		return nil, err
	}
	far, err := timeForecasts(ctx, store, task.Jobs, forecast.Request{Queue: parcels.Name(), Ahead: 24 * time.Hour, Tenants: true, WhatIf: what})
	if err != nil {
		return nil, err
	}
	result := percentiles(far)
	result[NearP50], result[NearP99] = stat.Percentile(near, 50), stat.Percentile(near, 99)
	result[CountTime] = stat.Median(counts)
	return result, nil
}

func timeForecasts(ctx context.Context, store sluice.Store, n int, request forecast.Request) ([]float64, error) {
	took := make([]float64, 0, n)
	for range n {
		begun := time.Now()
		found, err := forecast.Of(ctx, store, request)
		took = append(took, millis(time.Since(begun)))
		if err != nil {
			return nil, err
		}
		if len(found.Queues) != 1 || len(found.Queues[0].Waves) == 0 {
			return nil, fmt.Errorf("a forecast tells of %d queues", len(found.Queues))
		}
	}
	return took, nil
}

// spread makes n jobs due evenly within the next 24 hours, of waveTenants tenants.
func spread(n int) func(i int) sluice.EnqueueOptions {
	begun := time.Now()
	return func(i int) sluice.EnqueueOptions {
		// A prime stride reaches every part of the day.
		at := time.Duration(i*7919%n) * (24 * time.Hour / time.Duration(n))
		return sluice.EnqueueOptions{DueAt: begun.Add(at), Tenant: fmt.Sprintf("tenant-%d", i*31%waveTenants)}
	}
}
