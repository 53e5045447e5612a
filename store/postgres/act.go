package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/acted.sql
var actedSQL string

//go:embed sql/act_lock.sql
var actLockSQL string

//go:embed sql/job_keys.sql
var jobKeysSQL string

//go:embed sql/requeue.sql
var requeueSQL string

//go:embed sql/requeue_uncertain.sql
var requeueUncertainSQL string

//go:embed sql/delete_jobs.sql
var deleteJobsSQL string

//go:embed sql/reschedule.sql
var rescheduleSQL string

// Cancel ends unfinished jobs.
func (s *Store) Cancel(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, sluice.EventCancel, ids, act, func(ctx context.Context, tx pgx.Tx, sorted []sluice.ID, _ map[sluice.ID]error) (endings, error) {
		e := actEnding{event: sluice.EventCancel, ids: sorted, act: act.ID}
		for range sorted {
			e.reasons, e.actors = append(e.reasons, act.Reason), append(e.actors, act.By)
		}
		return endByAct(ctx, tx, e)
	})
}

// Requeue starts a new life of dead, cancelled and uncertain jobs, or takes such a life back if act.Undo is set.
func (s *Store) Requeue(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	if act.Undo {
		return s.undoRequeue(ctx, ids, act)
	}
	return s.act(ctx, sluice.EventRequeue, ids, act, func(ctx context.Context, tx pgx.Tx, sorted []sluice.ID, refused map[sluice.ID]error) (out endings, err error) {
		placed, err := lockPlaces(ctx, tx, sorted)
		if err != nil {
			return out, err
		}
		if err := retakeKeys(ctx, tx, sorted, refused); err != nil {
			return out, err
		}
		free := slices.DeleteFunc(slices.Clone(sorted), func(id sluice.ID) bool { return refused[id] != nil })
		waiting, err := waitForRuns(ctx, tx, free, act)
		if err != nil {
			return out, err
		}
		move := sluice.MoveOf(sluice.EventRequeue)
		if out.rows, err = list(ctx, tx, scanMoved, requeueSQL, uuids(free), states(move.From), act.By, act.Reason, nullUUID(act.ID), waiting); err != nil {
			return out, err
		}
		live := movedIDs(out.rows)
		back := slices.DeleteFunc(slices.Clone(free), func(id sluice.ID) bool { return !placed[id] || !live[id] })
		if out.awaited, err = takePlaceAgain(ctx, tx, back); err != nil {
			return out, err
		}
		uncertain, err := list(ctx, tx, scanMoved, requeueUncertainSQL, uuids(free), act.By, act.Reason, nullUUID(act.ID))
		out.rows = append(out.rows, uncertain...)
		return out, err
	})
}

// Resolve ends uncertain jobs with the outcome that a person found out.
func (s *Store) Resolve(ctx context.Context, ids []sluice.ID, outcome sluice.State, act sluice.Act) ([]error, error) {
	move, known := sluice.Resolution(outcome)
	return s.act(ctx, move.Event, ids, act, func(ctx context.Context, tx pgx.Tx, sorted []sluice.ID, _ map[sluice.ID]error) (out endings, err error) {
		if !known || len(sorted) == 0 {
			return out, nil
		}
		e := actEnding{event: move.Event, from: []sluice.State{sluice.StateUncertain}, ids: sorted, act: act.ID}
		var failure *string
		if outcome == sluice.StateDead {
			failure = nullText(storing.ResolvedError(act))
		}
		for range sorted {
			e.reasons, e.actors, e.errors = append(e.reasons, act.Reason), append(e.actors, act.By), append(e.errors, failure)
		}
		return endByAct(ctx, tx, e)
	})
}

// retakeKeys gives jobs that are about to be requeued their keys again. For each job whose key another job holds,
// refused gets an error.
func retakeKeys(ctx context.Context, tx pgx.Tx, ids []sluice.ID, refused map[sluice.ID]error) error {
	wanted, err := list(ctx, tx, scanWantedKey, jobKeysSQL, uuids(ids))
	if err != nil || len(wanted) == 0 {
		return err
	}
	at, err := standings(ctx, tx, ids)
	if err != nil {
		return err
	}
	unique := make(map[queueKey]wantedKey)
	for _, want := range wanted {
		if _, twice := unique[want.queueKey]; !twice && sluice.MoveOf(sluice.EventRequeue).Allows(at[want.job].state) {
			unique[want.queueKey] = want
		}
	}
	var takes []wantedKey
	for _, want := range unique {
		takes = append(takes, want)
	}
	slices.SortFunc(takes, func(a, b wantedKey) int { return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.key, b.key)) })
	holds, err := takeKeys(ctx, tx, takes, false)
	if err != nil {
		return err
	}
	for place, hold := range holds {
		if want := unique[place]; hold.job != want.job && hold.stale() {
			if err := passKey(ctx, tx, want); err != nil {
				return err
			}
			delete(holds, place)
		}
	}
	for _, want := range wanted {
		holder := unique[want.queueKey].job
		if hold, held := holds[want.queueKey]; held {
			holder = hold.job
		}
		if holder != want.job && !holder.IsZero() {
			refused[want.job] = fmt.Errorf("job %s holds the key %q: %w", holder, want.key, sluice.ErrDuplicate)
		}
	}
	return nil
}

func scanWantedKey(row pgx.CollectableRow) (wantedKey, error) {
	var want wantedKey
	var id pgtype.UUID
	err := row.Scan(&id, &want.queue, &want.key)
	want.job = idOf(id)
	return want, err
}

// Reschedule changes the due time of queued jobs.
func (s *Store) Reschedule(ctx context.Context, ids []sluice.ID, dueAt time.Time, act sluice.Act) ([]error, error) {
	return s.act(ctx, sluice.EventReschedule, ids, act, func(ctx context.Context, tx pgx.Tx, sorted []sluice.ID, refused map[sluice.ID]error) (out endings, err error) {
		rows, err := list(ctx, tx, scanRescheduled, rescheduleSQL, uuids(sorted), nullTime(dueAt), act.By, act.Reason, nullUUID(act.ID))
		for _, r := range rows {
			if r.expiresAt != nil {
				refused[r.id] = storing.DueTooLate(dueAt, *r.expiresAt)
			} else {
				out.rows = append(out.rows, r.moved)
			}
		}
		return out, err
	})
}

// rescheduled is a queued job that was to be rescheduled.
type rescheduled struct {
	moved
	expiresAt *time.Time // the job would expire before it is due
}

func scanRescheduled(row pgx.CollectableRow) (rescheduled, error) {
	var r rescheduled
	var id pgtype.UUID
	err := row.Scan(&id, &r.queue, &r.from, &r.expiresAt)
	r.id = idOf(id)
	return r, err
}

// DeleteJobs deletes dead and cancelled jobs. It cancels jobs that wait until one of them is requeued.
func (s *Store) DeleteJobs(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error) {
	return s.act(ctx, audit.EventDelete, ids, act, func(ctx context.Context, tx pgx.Tx, sorted []sluice.ID, _ map[sluice.ID]error) (out endings, err error) {
		prunable := slices.DeleteFunc(sluice.States(), func(state sluice.State) bool { return !state.Prunable() })
		out.rows, err = list(ctx, tx, scanMoved, deleteJobsSQL, uuids(sorted), states(prunable), act.By, act.Reason, nullUUID(act.ID))
		for _, r := range out.rows {
			out.awaited = append(out.awaited, r.id)
		}
		return out, err
	})
}

// act applies one act to many jobs in a transaction. For each job that did not move, act returns the reason.
func (s *Store) act(ctx context.Context, event sluice.Event, ids []sluice.ID, act sluice.Act,
	do func(ctx context.Context, tx pgx.Tx, sorted []sluice.ID, refused map[sluice.ID]error) (endings, error),
) ([]error, error) {
	sorted := slices.Clone(ids)
	slices.SortFunc(sorted, func(a, b sluice.ID) int { return slices.Compare(a[:], b[:]) })
	sorted = slices.Compact(sorted)
	var out endings
	var refused map[sluice.ID]error
	err := s.call(ctx, string(event), func(ctx context.Context, _ bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			refused = make(map[sluice.ID]error)
			before, err := acted(ctx, tx, act)
			if err != nil {
				return err
			}
			left := slices.DeleteFunc(slices.Clone(sorted), func(id sluice.ID) bool { return before[id] })
			if out, err = do(ctx, tx, left, refused); err != nil {
				return err
			}
			return refuse(ctx, tx, event, left, movedIDs(out.rows), refused)
		})
	})
	if err != nil {
		return nil, err
	}
	s.acted(event, out.rows)
	s.unblock(ctx, out.awaited)
	errs := make([]error, len(ids))
	for i, id := range ids {
		errs[i] = refused[id]
	}
	return errs, nil
}

// acted returns the jobs on which the same act was done before. It waits for another call of the act.
func acted(ctx context.Context, tx pgx.Tx, act sluice.Act) (map[sluice.ID]bool, error) {
	if act.ID.IsZero() {
		return nil, nil
	}
	if err := exec(ctx, tx, actLockSQL, [16]byte(act.ID)); err != nil {
		return nil, err
	}
	ids, err := list(ctx, tx, pgx.RowTo[pgtype.UUID], actedSQL, [16]byte(act.ID))
	if err != nil {
		return nil, err
	}
	before := make(map[sluice.ID]bool, len(ids))
	for _, id := range ids {
		before[idOf(id)] = true
	}
	return before, nil
}

// refuse adds to refused the reason of each job that an act did not move.
func refuse(ctx context.Context, tx pgx.Tx, event sluice.Event, ids []sluice.ID, done map[sluice.ID]bool, refused map[sluice.ID]error) error {
	missed := slices.DeleteFunc(slices.Clone(ids), func(id sluice.ID) bool { return done[id] || refused[id] != nil })
	if len(missed) == 0 {
		return nil
	}
	at, err := standings(ctx, tx, missed)
	if err != nil {
		return err
	}
	for _, id := range missed {
		refused[id] = sluice.ErrNotFound
		if now, known := at[id]; known {
			refused[id] = fmt.Errorf("%s from %s: %w", event, now.state, sluice.ErrNotAllowed)
		}
	}
	return nil
}
