package sqlite

import (
	"context"
	_ "embed"

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
	return s.act(ctx, sluice.EventUndo, ids, act, func(tx runner, id sluice.ID) (bool, error) {
		at, err := stand(tx, id)
		if err != nil || at.state != sluice.StateQueued {
			return false, err
		}
		outcomes, err := list(tx, scanOne[sluice.State], undoFindSQL, at.seq)
		if err != nil || len(outcomes) == 0 {
			return false, err
		}
		move, known := storing.UndoneMove(outcomes[0])
		if !known {
			return false, nil
		}
		if _, err := tx.exec(undoTakeSQL, at.seq); err != nil {
			return false, err
		}
		rows, err := heldRows(tx, []sluice.ID{id})
		if err != nil {
			return false, err
		}
		tx.moved(at.queue, "", move.Event)
		finish := newFinisher(tx)
		if err := finish.add(rows[id], ended{event: move.Event, act: act}); err != nil {
			return false, err
		}
		if _, err := tx.exec(undoEndedSQL, at.seq, at.generation); err != nil {
			return false, err
		}
		return true, finish.flush()
	})
}
