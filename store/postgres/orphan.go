package postgres

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

//go:embed sql/orphans_drop.sql
var orphansDropSQL string

// apart tells the claims of jobs whose own row somebody deleted from the others.
func apart(claims []*sluice.Claim) (there []*sluice.Claim, orphans []sluice.ID) {
	for _, c := range claims {
		if c.CreatedAt.IsZero() {
			orphans = append(orphans, c.ID)
		}
	}
	if len(orphans) == 0 {
		return claims, nil
	}
	for _, c := range claims {
		if !c.CreatedAt.IsZero() {
			there = append(there, c)
		}
	}
	return there, orphans
}

// existing leaves out the claims of jobs whose own row somebody deleted, and takes what is left of these out of the store.
// Only a claim that got such a one pays for it.
func (s *Store) existing(ctx context.Context, db rowsQuerier, request sluice.ClaimRequest, claims []*sluice.Claim) ([]*sluice.Claim, error) {
	there, orphans := apart(claims)
	return there, s.dropOrphans(ctx, db, request.Queue, orphans, request.Token, request.Holder)
}

// dropOrphans takes away jobs in flight whose own row somebody deleted. The zero token is any.
func (s *Store) dropOrphans(ctx context.Context, db rowsQuerier, queue string, orphans []sluice.ID, token sluice.Token, by string) error {
	if len(orphans) == 0 {
		return nil
	}
	gone, err := list(ctx, db, pgx.RowTo[int64], orphansDropSQL, uuids(orphans), nullUUID(sluice.ID(token)), by)
	if err == nil && gone[0] > 0 {
		s.log.Tell(event.JobsMissing, queue, "jobs", gone[0])
	}
	return err
}
