package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/acted.sql
var actedSQL string

//go:embed sql/requeue_find.sql
var requeueFindSQL string

//go:embed sql/requeue.sql
var requeueSQL string

//go:embed sql/requeue_uncertain.sql
var requeueUncertainSQL string

//go:embed sql/key_of.sql
var keyOfSQL string

//go:embed sql/reschedule.sql
var rescheduleSQL string

// Cancel ends unfinished jobs.
func (s *Store) Cancel(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	move := sluice.MoveOf(sluice.EventCancel)
	return s.act(ctx, move.Event, ids, act, func(tx runner, id sluice.ID) (bool, error) {
		rows, err := end(tx, ending{event: move.Event, from: move.From, ids: []sluice.ID{id}, act: act})
		return len(rows) > 0, err
	})
}

// Requeue starts a new life of jobs. Jobs of an order, and jobs that run after others, take their
// places at the end, when all requeued jobs live again.
func (s *Store) Requeue(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	if act.Undo {
		return s.undoRequeue(ctx, ids, act)
	}
	var again []int64
	takePlace := func(tx runner) error {
		seqs := again
		again = nil
		return takePlaceAgain(tx, seqs)
	}
	return s.actAndThen(ctx, sluice.EventRequeue, ids, act, takePlace, func(tx runner, id sluice.ID) (bool, error) {
		at, err := stand(tx, id)
		if err != nil || !sluice.MoveOf(sluice.EventRequeue).Allows(at.state) {
			return false, err
		}
		if at.state == sluice.StateUncertain {
			err = requeueUncertain(tx, id, at.seq, act)
		} else {
			err = requeue(tx, id, act, &again)
		}
		if err != nil {
			return false, err
		}
		tx.signal(sluice.Signal{Queue: at.queue})
		tx.moved(at.queue, "", sluice.EventRequeue)
		return true, tell(tx, moveEntry(id, at.queue, at.generation+1, sluice.EventRequeue, at.state, act))
	})
}

// Resolve ends uncertain jobs with the outcome that a person found out.
func (s *Store) Resolve(ctx context.Context, ids []sluice.ID, outcome sluice.State, act sluice.Act) ([]error, error) {
	move, _ := sluice.Resolution(outcome)
	e := ended{event: move.Event, act: act}
	if outcome == sluice.StateDead {
		e.failure = storing.ResolvedError(act)
	}
	return s.act(ctx, move.Event, ids, act, func(tx runner, id sluice.ID) (bool, error) {
		rows, err := heldRows(tx, []sluice.ID{id})
		if err != nil || move.Event == "" || rows[id].state != sluice.StateUncertain {
			return false, err
		}
		finish := newFinisher(tx)
		if err := finish.add(rows[id], e); err != nil {
			return false, err
		}
		tx.moved(rows[id].queue, "", move.Event)
		return true, finish.flush()
	})
}

// requeueUncertain starts a new life of an uncertain job, which takes its key again.
func requeueUncertain(tx runner, id sluice.ID, seq int64, act sluice.Act) error {
	old, err := list(tx, func(rows *sql.Rows) (finished, error) {
		var f finished
		err := rows.Scan(&f.queue, &f.key)
		return f, err
	}, keyOfSQL, seq)
	if err != nil {
		return err
	}
	if _, err := retakeKey(tx, id, old[0]); err != nil {
		return err
	}
	if err := letBeside(tx, id, act); err != nil {
		return err
	}
	_, err = tx.exec(requeueUncertainSQL, seq, now())
	return err
}

// letBeside allows a job to run beside its orphan runs, if the act asks for it.
func letBeside(tx runner, id sluice.ID, act sluice.Act) error {
	if !act.BesideOpenRun {
		return nil
	}
	return markStrays(tx, id, strayBesideSQL, audit.EventBeside, act)
}

// finished is a finished job that is to be requeued.
type finished struct {
	seq           int64
	queue, tenant string
	priority      int
	key           *string
	batch         []byte
	limitKey      *string
	cost          *int
	ordered       bool // it has an order key, or runs after other jobs
	generation    int
	outcome       string
}

func requeue(tx runner, id sluice.ID, act sluice.Act, again *[]int64) error {
	rows, err := list(tx, func(rows *sql.Rows) (finished, error) {
		var f finished
		err := rows.Scan(&f.seq, &f.queue, &f.tenant, &f.priority, &f.key, &f.generation, &f.outcome, &f.ordered, &f.batch, &f.limitKey, &f.cost)
		return f, err
	}, requeueFindSQL, id[:])
	if err != nil || len(rows) == 0 {
		return err
	}
	old, at := rows[0], now()
	keyed, err := retakeKey(tx, id, old)
	if err != nil {
		return err
	}
	if _, err := tx.exec(requeueSQL, old.seq, old.generation, at); err != nil {
		return err
	}
	if err := letBeside(tx, id, act); err != nil {
		return err
	}
	waits, err := waitsForRun(tx, id)
	if err != nil {
		return err
	}
	var behind any
	if waits {
		behind = old.seq // the job waits for itself until its run is forgotten
	}
	if _, err = tx.exec(enqueueLiveSQL, old.seq, old.queue, old.tenant, old.priority, at, nil, keyed, behind, old.generation+1, false, nullBytes(old.batch), old.limitKey, max(orZero(old.cost), 1)); err != nil {
		return err
	}
	var count counting
	count.add(idOf(old.batch), sluice.State(old.outcome), -1)
	if err := count.put(tx); err != nil || !old.ordered {
		return err
	}
	*again = append(*again, old.seq)
	_, err = tx.exec(orderGiveSQL, old.seq)
	return err
}

// retakeKey gives a requeued job its key again, or returns an error if another unfinished job holds
// the key.
func retakeKey(tx runner, id sluice.ID, old finished) (keyed bool, err error) {
	if old.key == nil {
		return false, nil
	}
	holds, err := list(tx, scanKeyHold, keyHolderSQL, old.queue, *old.key)
	if err != nil {
		return false, err
	}
	if len(holds) > 0 && holds[0].job == id {
		return holds[0].until == nil, nil
	}
	if len(holds) > 0 && holds[0].holds(now()) {
		return false, fmt.Errorf("job %s holds the key %q: %w", holds[0].job, *old.key, sluice.ErrDuplicate)
	}
	_, err = tx.exec(keyPassSQL, old.queue, *old.key, id[:], nil)
	return true, err
}

// Reschedule changes the due time of queued jobs.
func (s *Store) Reschedule(ctx context.Context, ids []sluice.ID, dueAt time.Time, act sluice.Act) ([]error, error) {
	return s.act(ctx, sluice.EventReschedule, ids, act, func(tx runner, id sluice.ID) (bool, error) {
		at, err := stand(tx, id)
		if err != nil || at.state != sluice.StateQueued {
			return false, err
		}
		due := now()
		if !dueAt.IsZero() {
			due = dueAt.UnixMicro()
		}
		if at.expires != nil && *at.expires <= due {
			return false, storing.DueTooLate(dueAt, time.UnixMicro(*at.expires))
		}
		if _, err := tx.exec(rescheduleSQL, at.seq, due); err != nil {
			return false, err
		}
		tx.signal(sluice.Signal{Queue: at.queue})
		entry := moveEntry(id, at.queue, at.generation, sluice.EventReschedule, at.state, act)
		entry.To, entry.Before, entry.After = at.state, sluice.DueText(time.UnixMicro(at.due)), sluice.DueText(time.UnixMicro(due))
		return true, tell(tx, entry)
	})
}

// DeleteJobs deletes dead and cancelled jobs. It cancels jobs that wait until one of them is requeued.
func (s *Store) DeleteJobs(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, audit.EventDelete, ids, act, func(tx runner, id sluice.ID) (bool, error) {
		at, err := stand(tx, id)
		if err != nil || !at.state.Prunable() {
			return false, err
		}
		waiting, err := list(tx, scanOne[int64], afterWaitingSQL, at.seq)
		if err != nil {
			return false, err
		}
		if err := deleteJobs(tx, fmt.Sprintf("[%d]", at.seq)); err != nil {
			return false, err
		}
		if err := unblock(tx, []int64{at.seq}, waiting); err != nil {
			return false, err
		}
		entry := moveEntry(id, at.queue, at.generation, audit.EventDelete, at.state, act)
		entry.To = at.state
		return true, tell(tx, entry)
	})
}

// act applies one act to many jobs in a transaction, one by one. For each job that did not move,
// act returns the reason. Jobs on which the same act was done before stay as they are.
func (s *Store) act(ctx context.Context, event sluice.Event, ids []sluice.ID, act sluice.Act, do func(tx runner, id sluice.ID) (bool, error)) ([]error, error) {
	return s.actAndThen(ctx, event, ids, act, func(runner) error { return nil }, do)
}

// actAndThen is act, and calls then at the end of the transaction.
func (s *Store) actAndThen(ctx context.Context, event sluice.Event, ids []sluice.ID, act sluice.Act,
	then func(tx runner) error, do func(tx runner, id sluice.ID) (bool, error),
) ([]error, error) {
	errs := make([]error, len(ids))
	err := s.write(ctx, string(event), func(tx runner, _ bool) error {
		for i, id := range ids {
			var err error
			if errs[i], err = actOne(tx, event, id, act, do); err != nil {
				return err
			}
		}
		return then(tx)
	})
	if err != nil {
		return nil, err
	}
	return errs, nil
}

func actOne(tx runner, event sluice.Event, id sluice.ID, act sluice.Act, do func(tx runner, id sluice.ID) (bool, error)) (answer, err error) {
	if !act.ID.IsZero() {
		before, err := list(tx, scanOne[bool], actedSQL, act.ID[:], id[:])
		if err != nil || before[0] {
			return nil, err
		}
	}
	moved, err := do(tx, id)
	if refused(err) {
		return err, nil
	}
	if err != nil || moved {
		return nil, err
	}
	at, err := stand(tx, id)
	if err != nil {
		return nil, err
	}
	if at.state == "" {
		return sluice.ErrNotFound, nil
	}
	return fmt.Errorf("%s from %s: %w", event, at.state, sluice.ErrNotAllowed), nil
}
