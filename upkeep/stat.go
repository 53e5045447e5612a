package upkeep

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice/stat"
)

// foldBatch is how many statistics one call adds up. foldSlices is the most calls per round, so that recovery
// never waits for long.
const (
	foldBatch  = 500
	foldSlices = 4
)

// foldStats adds up the counts of processes after each bucket. With all, it adds up all buckets that are over.
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
