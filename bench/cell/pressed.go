package cell

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/bench/stat"
)

// turn is how many calls in a row store a job in the same queue, in a Pressed cell. The turns are so short that both queues
// meet the same noise.
const turn = 200

// measurePressed lets one caller store task.Jobs single jobs in a queue without a limit and as many in one with max_waiting, by
// turns. Each queue has task.Due waiting jobs before.
func measurePressed(ctx context.Context, task Task) (Result, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = store.Close() }()
	client := sluice.NewClient(store, sluice.ClientOptions{})
	queues := []sluice.TypedQueue[Parcel]{sluice.QueueOf[Parcel]("free"), sluice.QueueOf[Parcel]("pressed")}
	for i, q := range queues {
		settings := sluice.DefaultSettings()
		settings.MaxWaiting = i * 2 * (task.Due + task.Jobs)
		if _, err := client.EnsureQueue(ctx, q.Name(), settings, sluice.Act{By: "bench"}); err != nil {
			return nil, err
		}
		if err := fillQueue(ctx, client, q, task.Due, nil); err != nil {
			return nil, err
		}
	}
	if err := tidy(ctx, task); err != nil {
		return nil, err
	}
	var p50s, cpus [2][]float64
	for n := range 2 + task.Jobs/turn {
		for k := range queues {
			i := (n + k) % 2 // neither is always the first
			p50, cpu, err := takeTurn(ctx, client, queues[i])
			if err != nil {
				return nil, err
			}
			if n >= 2 { // the first turns warm up
				p50s[i], cpus[i] = append(p50s[i], p50), append(cpus[i], cpu)
			}
		}
	}
	return Result{
		P50: stat.Median(p50s[1]), ClientCPU: stat.Median(cpus[1]),
		PressedP50: stat.Median(stat.Ratios(p50s[1], p50s[0])), PressedCPU: stat.Median(stat.Ratios(cpus[1], cpus[0])),
	}, nil
}

// takeTurn stores single jobs in a queue. It returns the median time of a call, and the client's processor time for each 1,000
// jobs, both in milliseconds.
func takeTurn(ctx context.Context, client *sluice.Client, q sluice.TypedQueue[Parcel]) (p50, cpu float64, err error) {
	before, err := usedCPU(0)
	if err != nil {
		return 0, 0, err
	}
	took := make([]float64, turn)
	for i := range took {
		begun := time.Now()
		if _, err := q.Enqueue(ctx, client, newParcel(), sluice.EnqueueOptions{}); err != nil {
			return 0, 0, err
		}
		took[i] = millis(time.Since(begun))
	}
	after, err := usedCPU(0)
	return stat.Median(took), millis(after.client-before.client) * 1000 / turn, err
}
