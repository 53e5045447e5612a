package postgres

import (
	"context"
	_ "embed"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/hold"
)

//go:embed sql/hold.sql
var holdSQL string

//go:embed sql/hold_put.sql
var holdPutSQL string

//go:embed sql/hold_release.sql
var holdReleaseSQL string

//go:embed sql/hold_drop.sql
var holdDropSQL string

//go:embed sql/holds.sql
var holdsSQL string

//go:embed sql/holds_queue.sql
var holdsQueueSQL string

//go:embed sql/holds_jobs.sql
var holdsJobsSQL string

// Hold holds queued jobs.
func (s *Store) Hold(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, audit.EventHold, ids, act, func(ctx context.Context, tx pgx.Tx, sorted []sluice.ID, _ map[sluice.ID]error) (out endings, err error) {
		out.rows, out.awaited, err = moveHeld(ctx, tx, holdSQL, sorted, act)
		return out, err
	})
}

// moveHeld begins or ends holds, and returns the jobs that other jobs may wait for too long.
func moveHeld(ctx context.Context, tx pgx.Tx, text string, sorted []sluice.ID, act sluice.Act) (rows []moved, awaited []sluice.ID, err error) {
	rows, err = list(ctx, tx, func(row pgx.CollectableRow) (moved, error) {
		var m moved
		var id, other pgtype.UUID
		err := row.Scan(&id, &m.queue, &m.from, &other)
		if m.id = idOf(id); other.Valid {
			awaited = append(awaited, idOf(other))
		}
		return m, err
	}, text, uuids(sorted), act.By, act.Reason, nullUUID(act.ID))
	return rows, sortedOnce(awaited), err
}

// Release ends the holds of jobs.
func (s *Store) Release(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, audit.EventReleaseHold, ids, act, func(ctx context.Context, tx pgx.Tx, sorted []sluice.ID, _ map[sluice.ID]error) (out endings, err error) {
		out.rows, out.awaited, err = moveHeld(ctx, tx, holdReleaseSQL, sorted, act) // each may have ended since the statement began
		if err != nil || len(out.rows) == 0 {
			return out, err
		}
		var released []sluice.ID
		for _, m := range out.rows {
			released = append(released, m.id)
		}
		u := unblocker{db: tx, ended: sortedOnce(released), cancel: func(ctx context.Context, e actEnding) (endings, error) { return endByAct(ctx, tx, e) }}
		err = u.run(ctx, unblockRounds, func(event sluice.Event, rows []moved) {
			for i := range rows {
				if event == sluice.EventCancel && rows[i].event == "" {
					rows[i].event = event
				}
			}
			out.rows = append(out.rows, rows...)
		})
		return out, err
	})
}

// putHolds notes the holds of jobs that were just stored.
func putHolds(ctx context.Context, db rowsQuerier, jobs []sluice.Insert, stored []int, places map[int]keyPlace, taken map[sluice.ID]bool) error {
	held := slices.DeleteFunc(slices.Clone(stored), func(i int) bool { return jobs[i].Hold == "" || taken[jobs[i].ID] })
	if len(held) == 0 {
		return nil
	}
	var ids uuidArray
	var queues, reasons []string
	var behind []pgtype.UUID
	for _, o := range sortedByID(len(held), func(i int) sluice.ID { return jobs[held[i]].ID }) {
		j := &jobs[held[o]]
		ids, queues, reasons = append(ids, j.ID), append(queues, j.Queue), append(reasons, j.Hold)
		behind = append(behind, nullUUID(places[held[o]].blockedBy))
	}
	return exec(ctx, db, holdPutSQL, ids, queues, reasons, hold.ByEnqueue, behind)
}

// dropHolds forgets the holds of jobs that have ended, and returns for which job each waited otherwise.
func dropHolds(ctx context.Context, db rowsQuerier, ids []pgtype.UUID) (map[pgtype.UUID]pgtype.UUID, error) {
	rows, err := query(ctx, db, holdDropSQL, ids)
	if err != nil {
		return nil, err
	}
	behind := make(map[pgtype.UUID]pgtype.UUID, len(ids))
	var id, other pgtype.UUID
	_, err = pgx.ForEachRow(rows, []any{&id, &other}, func() error {
		behind[id] = other
		return nil
	})
	return behind, err
}

// forgetHolds deletes the holds of jobs that have ended. Blockers are the jobs that ended jobs waited for: a held job among
// them is replaced by the job that the held one waited for otherwise.
func forgetHolds(ctx context.Context, db rowsQuerier, ids, blockers []pgtype.UUID) error {
	behind, err := dropHolds(ctx, db, ids)
	for i, id := range blockers {
		if other, held := behind[id]; held {
			blockers[i] = other
		}
	}
	return err
}

// Holds lists holds, the newest job first.
func (s *Store) Holds(ctx context.Context, filter hold.Filter) ([]hold.Held, error) {
	text, args := holdsSQL, []any{nullUUID(filter.Before), filter.Limit}
	switch {
	case filter.Jobs != nil:
		text, args = holdsJobsSQL, append(args, filter.Queue, uuids(filter.Jobs))
	case filter.Queue != "":
		text, args = holdsQueueSQL, append(args, filter.Queue)
	}
	var out []hold.Held
	err := s.call(ctx, "list holds", func(ctx context.Context, _ bool) (err error) {
		out, err = list(ctx, s.pool, scanHeld, text, args...)
		return err
	})
	return out, err
}

func scanHeld(row pgx.CollectableRow) (hold.Held, error) {
	var h hold.Held
	var id pgtype.UUID
	var at pgtype.Timestamptz
	err := row.Scan(&id, &h.Queue, &h.Reason, &h.By, &at)
	h.JobID, h.At = idOf(id), timeOf(at)
	return h, err
}
