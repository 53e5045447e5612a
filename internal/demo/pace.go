package demo

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/flow"
)

// Pace is how fast payments were claimed, according to the audit.
type Pace struct {
	// Rate and Burst are the limits.
	Rate  string `json:"rate"`
	Burst int    `json:"burst"`
	// Claims is the number of claims; Over of them broke the limits.
	Claims int `json:"claims"`
	Over   int `json:"over"`
	// PerSecond is the mean rate from the first claim to the last.
	PerSecond float64 `json:"per_second"`
}

// CheckPace reads every claim of a queue that audits all moves, and counts the claims over the
// limits. Such a claim exceeds the rate and the burst in the window that ends with it. The audit
// knows claims, not starts: a claim may come a little before its jobs may start.
func CheckPace(ctx context.Context, client *sluice.Client, queue sluice.Queue) (Pace, error) {
	rate := queue.Settings.Rate
	pace := Pace{Rate: rate.String(), Burst: queue.Settings.Burst}
	starts, err := claimsOf(ctx, client, queue.Name)
	if err != nil || len(starts) == 0 {
		return pace, err
	}
	pace.Claims = len(starts)
	first := 0
	for i, start := range starts {
		for !starts[first].After(start.Add(flow.MaxAhead - rate.Per)) {
			first++
		}
		if i-first+1 > rate.Jobs+queue.Settings.Burst {
			pace.Over++
		}
	}
	pace.PerSecond = float64(len(starts)) / max(starts[len(starts)-1].Sub(starts[0]).Seconds(), 1e-3)
	return pace, nil
}

// claimsOf lists the times of a queue's claims, earliest first.
func claimsOf(ctx context.Context, client *sluice.Client, queue string) ([]time.Time, error) {
	moves, err := movesOf(ctx, client, queue)
	if err != nil {
		return nil, err
	}
	var starts []time.Time
	for _, move := range moves {
		if move.Event == sluice.EventClaim {
			starts = append(starts, move.At)
		}
	}
	slices.SortFunc(starts, time.Time.Compare)
	return starts, nil
}
