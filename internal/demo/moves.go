package demo

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
)

// movesOf lists what the audit tells of the jobs of a queue, in the order in which it was written. That order
// is exact where instants are not: a claim is written after what is in flight was counted, and an end before
// it can be counted.
func movesOf(ctx context.Context, client *sluice.Client, queue string) ([]sluice.AuditEntry, error) {
	var moves []sluice.AuditEntry
	filter := sluice.AuditFilter{Object: sluice.ObjectJob, Name: queue, Limit: 10_000}
	for {
		page, err := client.Audit(ctx, filter)
		if err != nil {
			return nil, fmt.Errorf("read the audit: %w", err)
		}
		moves = append(moves, page...)
		if len(page) < filter.Limit {
			slices.Reverse(moves)
			return moves, nil
		}
		filter.Before = page[len(page)-1].Seq
	}
}
