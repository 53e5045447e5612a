package postgres

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

//go:embed sql/claim_orphans.sql
var claimOrphansSQL string

// existing leaves out the claims of jobs whose own row somebody deleted, and takes what is left of these out of the store.
// Only a claim that got such a one pays for it.
func (s *Store) existing(ctx context.Context, db rowsQuerier, request sluice.ClaimRequest, claims []*sluice.Claim) ([]*sluice.Claim, error) {
	var orphans []sluice.ID
	for _, c := range claims {
		if c.CreatedAt.IsZero() {
			orphans = append(orphans, c.ID)
		}
	}
	if len(orphans) == 0 {
		return claims, nil
	}
	there := make([]*sluice.Claim, 0, len(claims)-len(orphans))
	for _, c := range claims {
		if !c.CreatedAt.IsZero() {
			there = append(there, c)
		}
	}
	gone, err := list(ctx, db, pgx.RowTo[int64], claimOrphansSQL, uuids(orphans), [16]byte(request.Token), request.Holder)
	if err == nil {
		s.log.Tell(event.JobsMissing, request.Queue, "jobs", gone[0])
	}
	return there, err
}
