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

// apart separates the claims of jobs whose row in sluice.job was deleted by hand.
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

// existing removes the claims of jobs whose row was deleted by hand, and deletes the rest of these jobs. Only a
// claim that got such a job pays for this.
func (s *Store) existing(ctx context.Context, db rowsQuerier, request sluice.ClaimRequest, claims []*sluice.Claim) ([]*sluice.Claim, error) {
	there, orphans := apart(claims)
	return there, s.dropOrphans(ctx, db, request.Queue, orphans, request.Token, request.Holder)
}

// dropOrphans deletes jobs in flight whose row was deleted by hand. The zero token matches any token.
func (s *Store) dropOrphans(ctx context.Context, db rowsQuerier, queue string, orphans []sluice.ID, token sluice.Token, by string) error {
	if len(orphans) == 0 {
		return nil
	}
	gone, err := list(ctx, db, pgx.RowTo[int64], orphansDropSQL, uuids(orphans), nullUUID(sluice.ID(token)), by)
	if err == nil && gone[0] > 0 {
		s.log.Emit(event.JobsMissing, queue, "jobs", gone[0])
	}
	return err
}
