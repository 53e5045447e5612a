package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
)

//go:embed sql/stray_list.sql
var strayListSQL string

//go:embed sql/stray_forget.sql
var strayForgetSQL string

//go:embed sql/note.sql
var noteSQL string

// StrayRuns lists runs whose jobs were cancelled.
func (s *Store) StrayRuns(ctx context.Context, queue string, after sluice.StrayRun, limit int) ([]sluice.StrayRun, error) {
	var out []sluice.StrayRun
	err := s.call(ctx, "list stray runs", func(ctx context.Context, _ bool) (err error) {
		out, err = list(ctx, s.pool, scanStray, strayListSQL, queue, after.CancelledAt, [16]byte(after.JobID), limit)
		return err
	})
	return out, err
}

func scanStray(row pgx.CollectableRow) (sluice.StrayRun, error) {
	var out sluice.StrayRun
	var id pgtype.UUID
	var at time.Time
	err := row.Scan(&id, &out.Queue, &out.Engine, &out.Ref, &at)
	out.JobID, out.CancelledAt = idOf(id), at.UTC()
	return out, err
}

// ForgetStrayRuns strikes runs from what StrayRuns lists.
func (s *Store) ForgetStrayRuns(ctx context.Context, runs []sluice.StrayRun) error {
	var ids uuidArray
	var refs []string
	for _, i := range sortedByID(len(runs), func(i int) sluice.ID { return runs[i].JobID }) {
		ids, refs = append(ids, runs[i].JobID), append(refs, runs[i].Ref)
	}
	if len(ids) == 0 {
		return nil
	}
	return s.call(ctx, "forget stray runs", func(ctx context.Context, _ bool) error {
		return exec(ctx, s.pool, strayForgetSQL, ids, refs)
	})
}

// Note adds entries to the audit that tell of no move.
func (s *Store) Note(ctx context.Context, entries []sluice.AuditEntry) error {
	for _, e := range entries {
		if err := e.CheckNote(); err != nil {
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
