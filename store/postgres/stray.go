package postgres

import (
	"context"
	_ "embed"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/engine"
)

//go:embed sql/orphan_run_list.sql
var strayListSQL string

//go:embed sql/orphan_run_forget.sql
var strayForgetSQL string

//go:embed sql/orphan_run_of.sql
var strayOfSQL string

//go:embed sql/orphan_run_open.sql
var strayOpenSQL string

//go:embed sql/orphan_run_beside.sql
var strayBesideSQL string

//go:embed sql/orphan_run_terminate.sql
var strayTerminateSQL string

//go:embed sql/note.sql
var noteSQL string

// OrphanRuns lists orphan runs: runs that may be open although their jobs have ended.
func (s *Store) OrphanRuns(ctx context.Context, queue string, after engine.OrphanRun, limit int) ([]engine.OrphanRun, error) {
	var out []engine.OrphanRun
	err := s.call(ctx, "list orphan runs", func(ctx context.Context, _ bool) (err error) {
		out, err = list(ctx, s.pool, scanStray, strayListSQL, queue, after.CancelledAt, [16]byte(after.JobID), limit, after.Ref)
		return err
	})
	return out, err
}

func scanStray(row pgx.CollectableRow) (engine.OrphanRun, error) {
	var out engine.OrphanRun
	var id pgtype.UUID
	var at time.Time
	var claimedAt pgtype.Timestamptz
	err := row.Scan(&id, &out.Queue, &out.Engine, &out.Ref, &at, &out.Tenant, &out.Generation, &claimedAt, &out.Started,
		&out.Terminate, &out.Beside)
	out.JobID, out.CancelledAt, out.ClaimedAt = idOf(id), at.UTC(), timeOf(claimedAt)
	return out, err
}

// ForgetOrphanRuns deletes orphan runs that have ended, and unblocks the jobs that waited for them, in one
// transaction.
func (s *Store) ForgetOrphanRuns(ctx context.Context, runs []engine.OrphanRun) error {
	var ids uuidArray
	var refs []string
	for _, i := range sortedByID(len(runs), func(i int) sluice.ID { return runs[i].JobID }) {
		ids, refs = append(ids, runs[i].JobID), append(refs, runs[i].Ref)
	}
	if len(ids) == 0 {
		return nil
	}
	var room, free, cancelled []moved
	err := s.call(ctx, "forget orphan runs", func(ctx context.Context, _ bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
			free, cancelled = nil, nil
			if room, err = list(ctx, tx, scanMoved, strayForgetSQL, ids, refs); err != nil || len(room) == 0 {
				return err
			}
			waited := make([]sluice.ID, len(room))
			for i, m := range room {
				waited[i] = m.id
			}
			u := unblocker{db: tx, ended: sortedOnce(waited), cancel: func(ctx context.Context, e actEnding) (endings, error) { return endByAct(ctx, tx, e) }}
			return u.run(ctx, unblockRounds, func(event sluice.Event, rows []moved) {
				if event == sluice.EventCancel {
					cancelled = append(cancelled, rows...)
				} else {
					free = append(free, rows...)
				}
			})
		})
	})
	if err != nil {
		return err
	}
	s.signalMoved(sluice.EventRelease, slices.Concat(room, free))
	s.signalMoved(sluice.EventCancel, cancelled)
	return nil
}

// waitForRuns returns the jobs, among those to be requeued, that must wait for their orphan runs, and locks these
// runs. If the act allows jobs to run beside open runs, waitForRuns marks the runs instead and returns none.
func waitForRuns(ctx context.Context, tx pgx.Tx, ids []sluice.ID, act sluice.Act) (uuidArray, error) {
	if act.BesideOpenRun {
		_, err := list(ctx, tx, scanMoved, strayBesideSQL, uuids(ids), act.By, act.Reason, nullUUID(act.ID))
		return uuidArray{}, err
	}
	open, err := list(ctx, tx, pgx.RowTo[pgtype.UUID], strayOpenSQL, uuids(ids))
	waiting := uuidArray{}
	for _, id := range open {
		waiting = append(waiting, idOf(id))
	}
	return waiting, err
}

// Terminate marks the orphan runs of jobs, so that upkeep ends them by force.
func (s *Store) Terminate(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, audit.EventTerminate, ids, act, func(ctx context.Context, tx pgx.Tx, sorted []sluice.ID, _ map[sluice.ID]error) (out endings, err error) {
		out.rows, err = list(ctx, tx, scanMoved, strayTerminateSQL, uuids(sorted), act.By, act.Reason, nullUUID(act.ID))
		return out, err
	})
}

// AppendAudit adds entries to the audit that record no move.
func (s *Store) AppendAudit(ctx context.Context, entries []sluice.AuditEntry) error {
	for _, e := range entries {
		if err := e.CheckAppended(); err != nil {
			return err
		}
	}
	if len(entries) == 0 {
		return nil
	}
	return s.call(ctx, "note", func(ctx context.Context, _ bool) error { return noteEntries(ctx, s.pool, entries) })
}

func noteEntries(ctx context.Context, db rowsQuerier, entries []sluice.AuditEntry) error {
	var objects, names, events, actors, reasons []string
	var jobs, acts []pgtype.UUID
	var generations []int
	var before, after []*string
	for _, e := range entries {
		objects, names, events = append(objects, string(e.Object)), append(names, e.Name), append(events, string(e.Event))
		actors, reasons, generations = append(actors, e.Actor), append(reasons, e.Reason), append(generations, e.Generation)
		jobs, acts = append(jobs, nullUUID(e.JobID)), append(acts, nullUUID(e.ActID))
		before, after = append(before, nullText(string(e.Before))), append(after, nullText(string(e.After)))
	}
	if len(entries) == 0 {
		return nil
	}
	return exec(ctx, db, noteSQL, objects, names, events, actors, reasons, jobs, generations, before, after, acts)
}
