package demo

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

// movesOf lists the audit entries of a queue's jobs, in the order in which they were written. This
// order is exact where instants are not. A claim is written after the jobs in flight were counted,
// and an end before a claim can count it.
func movesOf(ctx context.Context, client *sluice.Client, queue string) ([]sluice.AuditEntry, error) {
	var moves []sluice.AuditEntry
	filter := sluice.AuditFilter{Object: audit.ObjectJob, Name: queue, Limit: 10_000}
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
