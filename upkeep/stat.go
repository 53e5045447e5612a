package upkeep

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice/stat"
)

// foldBatch is how much of the statistics is added up in one call, and foldSlices how many calls a round makes at the
// most, so that recovery never waits for long.
const (
	foldBatch  = 500
	foldSlices = 4
)

// foldStats adds up what processes counted, each time a slot is over; with all, all that is over by now.
func (u *Upkeep) foldStats(ctx context.Context, all bool) error {
	if !all && time.Since(u.folded) < stat.Fine {
		return nil
	}
	u.folded = time.Now()
	for n := 1; ; n++ {
		done, err := stat.Given(u.store).FoldStats(ctx, foldBatch)
		if err != nil {
			return fmt.Errorf("fold statistics: %w", err)
		}
		if done < foldBatch || !all && n == foldSlices {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}
