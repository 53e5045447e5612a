package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/ended.sql
var endedSQL string

// Await makes the store signal the ends of jobs in this process. A commit of another process arrives as a signal without
// a job.
func (s *Store) Await(_ context.Context, ids []sluice.ID) error {
	s.awaited.Add(ids, time.Now())
	return nil
}

// Ended returns the ends of those jobs that are not unfinished.
func (s *Store) Ended(ctx context.Context, ids []sluice.ID) (ended []await.End, err error) {
	err = s.read(ctx, "look for ended jobs", func(tx runner) (err error) {
		ended, err = list(tx, scanEnd, endedSQL, idList(ids))
		return err
	})
	return ended, err
}

func scanEnd(rows *sql.Rows) (end await.End, err error) {
	var id, result []byte
	var outcome, failure *string
	var finishedAt *int64
	var removed bool
	err = rows.Scan(&id, &outcome, &result, &removed, &failure, &finishedAt)
	end = await.End{ID: idOf(id), State: sluice.State(orZero(outcome)), Error: orZero(failure), FinishedAt: timeOf(finishedAt)}
	end.Result, _ = storing.Result(result)
	end.ResultRemoved = removed
	return end, err
}
