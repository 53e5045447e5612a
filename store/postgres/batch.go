package postgres

import (
	"context"
	_ "embed"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/batch"
)

var (
	_ batch.Store  = (*Store)(nil)
	_ batch.Opener = txEnqueuer{}
)

//go:embed sql/batch.sql
var batchSQL string

//go:embed sql/batches.sql
var batchesSQL string

//go:embed sql/batch_open.sql
var batchOpenSQL string

//go:embed sql/batch_enter.sql
var batchEnterSQL string

//go:embed sql/batch_states.sql
var batchStatesSQL string

//go:embed sql/batch_hold_open.sql
var batchHoldOpenSQL string

//go:embed sql/batch_close.sql
var batchCloseSQL string

//go:embed sql/batch_pause_lock.sql
var batchPauseLockSQL string

//go:embed sql/batch_pause.sql
var batchPauseSQL string

//go:embed sql/batch_forget.sql
var batchForgetSQL string

//go:embed sql/batch_recount.sql
var batchRecountSQL string

// scanBatch reads a batch.
func scanBatch(row pgx.CollectableRow) (batch.Batch, error) { return scanBatchAfter(row) }

// scanBatchAfter reads a batch, and the columns before it.
func scanBatchAfter(row pgx.CollectableRow, first ...any) (batch.Batch, error) {
	var b batch.Batch
	var id, parent pgtype.UUID
	var body string
	var created, closed, completed, succeeded, died, now pgtype.Timestamptz
	err := row.Scan(append(first, &id, &b.Name, &parent, &body, &created, &b.CreatedBy, &closed, &completed, &succeeded, &died, &b.Paused,
		&b.Total, &b.Completed, &b.Dead, &b.Cancelled, &b.Batches, &b.BatchesComplete, &now)...)
	if err != nil {
		return b, err
	}
	b.ID, b.Parent, b.CreatedAt, b.Now = idOf(id), idOf(parent), timeOf(created), timeOf(now)
	b.ClosedAt, b.CompletedAt, b.SucceededAt, b.DiedAt = timeOf(closed), timeOf(completed), timeOf(succeeded), timeOf(died)
	return b.WithBody(body)
}

// Batch returns a batch with its exact counts.
func (s *Store) Batch(ctx context.Context, id sluice.ID) (batch.Batch, error) {
	return lookUp(ctx, s, "look up batch", scanBatch, batchSQL, [16]byte(id))
}

// Batches lists batches, the newest first.
func (s *Store) Batches(ctx context.Context, filter batch.Filter) (out []batch.Batch, err error) {
	err = s.call(ctx, "list batches", func(ctx context.Context, _ bool) (err error) {
		out, err = list(ctx, s.pool, scanBatch, batchesSQL, nullUUID(filter.Parent), filter.Unfinished, nullUUID(filter.Before), filter.Limit)
		return err
	})
	return out, err
}

// OpenBatch stores a new batch.
func (s *Store) OpenBatch(ctx context.Context, one batch.Batch, _ sluice.Act) (out batch.Batch, err error) {
	err = s.call(ctx, "open batch", func(ctx context.Context, _ bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
			out, err = openBatch(ctx, tx, one)
			return err
		})
	})
	return out, err
}

func openBatch(ctx context.Context, db rowsQuerier, one batch.Batch) (batch.Batch, error) {
	found, err := list(ctx, db, scanBatch, batchSQL, [16]byte(one.ID))
	if err != nil || len(found) > 0 {
		return first(found), err
	}
	if !one.Parent.IsZero() {
		at, err := statesOfBatches(ctx, db, []sluice.ID{one.Parent})
		if err != nil {
			return batch.Batch{}, err
		}
		state, known := at[one.Parent]
		if err := batch.Refusal(one.Parent, known, state.open); err != nil {
			return batch.Batch{}, err
		}
		one.Paused = state.paused
	}
	body, err := one.Body()
	if err != nil {
		return batch.Batch{}, err
	}
	if err := exec(ctx, db, batchOpenSQL, [16]byte(one.ID), one.Name, nullUUID(one.Parent), body, one.CreatedBy, one.Paused); err != nil {
		return batch.Batch{}, err
	}
	found, err = list(ctx, db, scanBatch, batchSQL, [16]byte(one.ID))
	return first(found), err
}

func first[T any](found []T) (one T) {
	if len(found) > 0 {
		return found[0]
	}
	return one
}

// CloseBatch closes a batch.
func (s *Store) CloseBatch(ctx context.Context, id sluice.ID, all bool, _ sluice.Act) error {
	return s.call(ctx, "close batch", func(ctx context.Context, _ bool) error { return closeBatch(ctx, s.pool, id, all) })
}

func closeBatch(ctx context.Context, db rowsQuerier, id sluice.ID, all bool) error {
	found, err := list(ctx, db, pgx.RowTo[int], batchCloseSQL, [16]byte(id), all)
	return oneAtLeast(found, err)
}

// oneAtLeast returns a [sluice.ErrNotFound] if a statement has found nothing.
func oneAtLeast(found []int, err error) error {
	if err == nil && first(found) == 0 {
		return sluice.ErrNotFound
	}
	return err
}

// OpenBatch stores a new batch through the transaction.
func (e txEnqueuer) OpenBatch(ctx context.Context, one batch.Batch, _ sluice.Act) (out batch.Batch, err error) {
	err = e.do(ctx, "open batch", func(ctx context.Context) (err error) {
		out, err = openBatch(ctx, preparingTx{e.tx, e.store}, one)
		return err
	})
	return out, err
}

// CloseBatch closes a batch through the transaction.
func (e txEnqueuer) CloseBatch(ctx context.Context, id sluice.ID, all bool, _ sluice.Act) error {
	return e.do(ctx, "close batch", func(ctx context.Context) error { return closeBatch(ctx, preparingTx{e.tx, e.store}, id, all) })
}

// PauseBatch sets why a batch and all batches in it are paused.
func (s *Store) PauseBatch(ctx context.Context, id sluice.ID, reason string, act sluice.Act) error {
	event := audit.EventPause
	if reason == "" {
		event = audit.EventResume
	}
	return s.once(ctx, "pause batch", audit.ObjectBatch, id.String(), act, func(ctx context.Context, tx pgx.Tx, _ bool) error {
		if err := lockTree(ctx, tx, id); err != nil {
			return err
		}
		found, err := list(ctx, tx, pgx.RowTo[int], batchPauseSQL, [16]byte(id), reason, string(event), act.By, act.Reason, nullUUID(act.ID))
		return oneAtLeast(found, err)
	})
}

// lockTree locks a batch and all batches in it, also those that were opened before the last of the locks. Transactions
// that open more of them wait for the pause when they commit, and take it on.
func lockTree(ctx context.Context, tx pgx.Tx, id sluice.ID) error {
	for before := -1; ; {
		locked, err := list(ctx, tx, pgx.RowTo[int], batchPauseLockSQL, [16]byte(id))
		if err != nil || locked[0] == before {
			return err
		}
		before = locked[0]
	}
}

// ForgetBatches deletes batches that were complete long ago.
func (s *Store) ForgetBatches(ctx context.Context, age time.Duration, limit int) (gone int, err error) {
	err = s.call(ctx, "forget batches", func(ctx context.Context, _ bool) error {
		counts, err := list(ctx, s.pool, pgx.RowTo[int], batchForgetSQL, age, limit)
		gone = first(counts)
		return err
	})
	return gone, err
}

// RecountBatch counts the jobs of a batch one by one.
func (s *Store) RecountBatch(ctx context.Context, id sluice.ID) (out batch.Recount, err error) {
	err = s.call(ctx, "recount batch", func(ctx context.Context, _ bool) error {
		return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			found, err := list(ctx, tx, scanBatch, batchSQL, [16]byte(id))
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return sluice.ErrNotFound
			}
			counted, err := list(ctx, tx, func(row pgx.CollectableRow) (r batch.Recount, err error) {
				err = row.Scan(&r.Unfinished, &r.Ended.Total, &r.Ended.Completed, &r.Ended.Dead, &r.Ended.Cancelled)
				return r, err
			}, batchRecountSQL, [16]byte(id))
			out = first(counted)
			out.Batch = found[0]
			return err
		})
	})
	return out, err
}

// stateOfBatch says whether jobs can be added to a batch.
type stateOfBatch struct {
	open   bool
	paused string
	old    bool // the transaction sees only what was there when it began
}

// statesOfBatches keeps batches from being found complete until the transaction ends, and returns which of them are
// open. It writes no row: enqueues into one batch do not wait for one another. It leaves out unknown batches.
func statesOfBatches(ctx context.Context, db rowsQuerier, ids []sluice.ID) (map[sluice.ID]stateOfBatch, error) {
	entered, err := locksOf(ctx, db, batchEnterSQL, ids)
	if err != nil {
		return nil, err
	}
	rows, err := query(ctx, db, batchStatesSQL, uuids(ids))
	if err != nil {
		return nil, err
	}
	at := make(map[sluice.ID]stateOfBatch, len(ids))
	var id pgtype.UUID
	var state stateOfBatch
	old := false
	_, err = pgx.ForEachRow(rows, []any{&id, &state.open, &state.paused, &state.old}, func() error {
		at[idOf(id)] = stateOfBatch{state.open && entered[idOf(id)], state.paused, state.old}
		old = old || state.old
		return nil
	})
	if err == nil && old {
		err = exec(ctx, db, batchHoldOpenSQL, uuids(ids))
	}
	return at, err
}

// locksOf runs a statement that tries to lock batches, and returns which of them it has locked.
func locksOf(ctx context.Context, db rowsQuerier, text string, ids []sluice.ID) (map[sluice.ID]bool, error) {
	rows, err := query(ctx, db, text, uuids(ids))
	if err != nil {
		return nil, err
	}
	locked := make(map[sluice.ID]bool, len(ids))
	var id pgtype.UUID
	var is bool
	_, err = pgx.ForEachRow(rows, []any{&id, &is}, func() error {
		locked[idOf(id)] = is
		return nil
	})
	return locked, err
}

// enterBatches finds the jobs whose batches are closed or not stored, unless they are sent again, and returns the jobs,
// of which those of paused batches are held. Refused is nil if no job has a batch.
func enterBatches(ctx context.Context, db rowsQuerier, jobs []sluice.Insert) (_ []sluice.Insert, refused map[int]error, err error) {
	var ids []sluice.ID
	for i := range jobs {
		if id := jobs[i].Batch; !id.IsZero() && !slices.Contains(ids[max(0, len(ids)-1):], id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return jobs, nil, nil
	}
	at, err := statesOfBatches(ctx, db, sortedOnce(ids))
	if err != nil {
		return jobs, nil, err
	}
	refused = make(map[int]error)
	var doubtful uuidArray
	held := false
	for i := range jobs {
		j := &jobs[i]
		if j.Batch.IsZero() {
			continue
		}
		state, known := at[j.Batch]
		if err := batch.Refusal(j.Batch, known, state.open); err != nil {
			refused[i], doubtful = err, append(doubtful, j.ID)
		} else if state.paused != "" && j.Hold == "" {
			if !held {
				held, jobs = true, slices.Clone(jobs)
				j = &jobs[i]
			}
			j.Hold = batch.HoldReason(j.Batch, state.paused)
		}
	}
	if len(refused) == 0 {
		return jobs, nil, nil
	}
	sent, err := stored(ctx, db, doubtful)
	maps.DeleteFunc(refused, func(i int, _ error) bool { return sent[jobs[i].ID] })
	return jobs, refused, err
}
