package postgres

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/undo_find.sql
var undoFindSQL string

//go:embed sql/undo_take.sql
var undoTakeSQL string

//go:embed sql/undo_ended.sql
var undoEndedSQL string

// undoRequeue ends the lives that requeues began, with the state and figures of the lives before.
func (s *Store) undoRequeue(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, sluice.EventUndo, ids, act, func(ctx context.Context, tx pgx.Tx, sorted []sluice.ID, _ map[sluice.ID]error) (out endings, err error) {
		found, err := undone(ctx, tx, sorted, act)
		if err != nil {
			return out, err
		}
		for _, e := range found {
			if err := exec(ctx, tx, undoTakeSQL, uuids(e.ids)); err != nil {
				return out, err
			}
			part, err := endByAct(ctx, tx, e)
			if err != nil {
				return out, err
			}
			if err := exec(ctx, tx, undoEndedSQL, uuids(e.ids)); err != nil {
				return out, err
			}
			for i := range part.rows {
				part.rows[i].event = e.event
			}
			out.rows, out.awaited = append(out.rows, part.rows...), append(out.awaited, part.awaited...)
		}
		return out, nil
	})
}

// undone locks the jobs whose requeue can be undone, and returns how they end, by their earlier outcome.
func undone(ctx context.Context, tx pgx.Tx, ids []sluice.ID, act sluice.Act) (map[sluice.State]actEnding, error) {
	found := make(map[sluice.State]actEnding)
	_, err := list(ctx, tx, func(row pgx.CollectableRow) (struct{}, error) {
		var id pgtype.UUID
		var outcome sluice.State
		err := row.Scan(&id, &outcome)
		move, known := storing.UndoneMove(outcome)
		if err != nil || !known {
			return struct{}{}, err
		}
		e := found[outcome]
		e.event, e.from, e.act = move.Event, []sluice.State{sluice.StateQueued}, act.ID
		e.ids, e.reasons, e.actors = append(e.ids, idOf(id)), append(e.reasons, act.Reason), append(e.actors, act.By)
		found[outcome] = e
		return struct{}{}, nil
	}, undoFindSQL, uuids(ids))
	return found, err
}
