package postgres

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/ended.sql
var endedSQL string

// awaitedAtOnce is how many jobs one notification names. The server takes at most 8,000 bytes.
const awaitedAtOnce = 200

// Await asks all processes that hear signals to signal the ends of jobs.
func (s *Store) Await(_ context.Context, ids []sluice.ID) error {
	s.awaits.Add(ids, time.Now())
	for few := range slices.Chunk(ids, awaitedAtOnce) {
		text := s.notifier.sender + awaitKind
		for _, id := range few {
			text += " " + id.String()
		}
		s.notifier.put(message{channel, text})
	}
	return nil
}

// awaitKind follows the sender in a notification that names awaited jobs.
const awaitKind = " await"

// awaitedIn returns the jobs that a notification asks to signal.
func awaitedIn(text string) (ids []sluice.ID) {
	_, rest, _ := strings.Cut(text, " ")
	names, is := strings.CutPrefix(" "+rest, awaitKind+" ")
	if !is {
		return nil
	}
	for name := range strings.FieldsSeq(names) {
		id, err := sluice.ParseID(name)
		if err != nil {
			return nil
		}
		ids = append(ids, id)
	}
	return ids
}

// signalEndedInTx signals the ends of awaited jobs that their holders completed in transactions of their own. No statement
// reports these.
func (s *Store) signalEndedInTx(settlements []sluice.Settlement, group []int) {
	for _, i := range group {
		if in := &settlements[i]; in.InTx && s.awaits.Take(in.ID) {
			s.signal(sluice.Signal{Ended: in.ID})
		}
	}
}

// Ended returns the ends of the jobs that have ended or are not stored.
func (s *Store) Ended(ctx context.Context, ids []sluice.ID) (ended []await.End, err error) {
	err = s.call(ctx, "look for ended jobs", func(ctx context.Context, _ bool) (err error) {
		ended, err = list(ctx, s.pool, scanEnd, endedSQL, uuids(ids))
		return err
	})
	return ended, err
}

func scanEnd(row pgx.CollectableRow) (end await.End, err error) {
	var id pgtype.UUID
	var outcome, failure *string
	var result []byte
	var finishedAt pgtype.Timestamptz
	err = row.Scan(&id, &outcome, &result, &failure, &finishedAt)
	end = await.End{ID: idOf(id), State: sluice.State(orZero(outcome)), Error: orZero(failure), FinishedAt: timeOf(finishedAt)}
	end.Result, end.ResultRemoved = storing.Result(result)
	return end, err
}
