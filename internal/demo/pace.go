package demo

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// Pace is how fast payments were claimed, as the audit tells it.
type Pace struct {
	// Rate and Burst are what was allowed.
	Rate  string `json:"rate"`
	Burst int    `json:"burst"`
	// Claims were made, Over of them at a moment at which they were not allowed.
	Claims int `json:"claims"`
	Over   int `json:"over"`
	// PerSecond is the mean from the first claim to the last.
	PerSecond float64 `json:"per_second"`
}

// CheckPace looks at every claim of a queue whose moves are all audited, and counts those that were more than the rate and
// the burst allow in the window that ends with them.
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
		for !starts[first].After(start.Add(-rate.Per)) {
			first++
		}
		if i-first+1 > rate.Jobs+queue.Settings.Burst {
			pace.Over++
		}
	}
	pace.PerSecond = float64(len(starts)) / max(starts[len(starts)-1].Sub(starts[0]).Seconds(), 1e-3)
	return pace, nil
}

// claimsOf lists when each claim of a queue was made, the first first.
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
