package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/batch"
)

var (
	_ batch.Store  = (*Store)(nil)
	_ batch.Opener = (*txEnqueuer)(nil)
)

//go:embed sql/batch.sql
var batchSQL string

//go:embed sql/batches.sql
var batchesSQL string

//go:embed sql/batch_open.sql
var batchOpenSQL string

//go:embed sql/batch_count_new.sql
var batchCountNewSQL string

//go:embed sql/batch_add.sql
var batchAddSQL string

//go:embed sql/batch_state.sql
var batchStateSQL string

//go:embed sql/batch_tree.sql
var batchTreeSQL string

//go:embed sql/batch_close.sql
var batchCloseSQL string

//go:embed sql/batch_pause.sql
var batchPauseSQL string

//go:embed sql/batch_due.sql
var batchDueSQL string

//go:embed sql/batch_changed.sql
var batchChangedSQL string

//go:embed sql/batch_seen.sql
var batchSeenSQL string

//go:embed sql/batch_decided.sql
var batchDecidedSQL string

//go:embed sql/batch_old.sql
var batchOldSQL string

//go:embed sql/batch_forget.sql
var batchForgetSQL string

//go:embed sql/batch_count_forget.sql
var batchCountForgetSQL string

//go:embed sql/batch_recount.sql
var batchRecountSQL string

func scanBatch(rows *sql.Rows) (batch.Batch, error) { return scanBatchAnd(rows) }

// scanBatchAnd reads a batch and the columns after it.
func scanBatchAnd(rows *sql.Rows, more ...any) (batch.Batch, error) {
	b := batch.Batch{Now: time.UnixMicro(now()).UTC()}
	var id, parent []byte
	var body string
	var created int64
	var closed, completed, succeeded, died *int64
	err := rows.Scan(append([]any{
		&id, &b.Name, &parent, &body, &created, &b.CreatedBy, &closed, &completed, &succeeded, &died, &b.Paused,
		&b.Total, &b.Completed, &b.Dead, &b.Cancelled, &b.Batches, &b.BatchesComplete,
	}, more...)...)
	if err != nil {
		return b, err
	}
	b.ID, b.Parent, b.CreatedAt = idOf(id), idOf(parent), timeOf(&created)
	b.ClosedAt, b.CompletedAt, b.SucceededAt, b.DiedAt = timeOf(closed), timeOf(completed), timeOf(succeeded), timeOf(died)
	return b.WithBody(body)
}

// Batch returns a batch with its counts.
func (s *Store) Batch(ctx context.Context, id sluice.ID) (batch.Batch, error) {
	return lookUp(ctx, s, "look up batch", scanBatch, batchSQL, id[:])
}

// Batches lists batches, the newest first.
func (s *Store) Batches(ctx context.Context, filter batch.Filter) (out []batch.Batch, err error) {
	err = s.read(ctx, "list batches", func(tx runner) (err error) {
		out, err = list(tx, scanBatch, batchesSQL, nullID(filter.Parent), filter.Unfinished, nullID(filter.Before), filter.Limit)
		return err
	})
	return out, err
}

// OpenBatch stores a new batch.
func (s *Store) OpenBatch(ctx context.Context, one batch.Batch, _ sluice.Act) (out batch.Batch, err error) {
	err = s.write(ctx, "open batch", func(tx runner, _ bool) (err error) {
		out, err = openBatch(tx, one)
		return err
	})
	return out, err
}

func openBatch(tx runner, one batch.Batch) (out batch.Batch, err error) {
	found, err := list(tx, scanBatch, batchSQL, one.ID[:])
	if err != nil || len(found) > 0 {
		return append(found, out)[0], err
	}
	if !one.Parent.IsZero() {
		state, err := stateOfBatch(tx, one.Parent)
		if err == nil {
			err = batch.Refusal(one.Parent, state.known, state.open)
		}
		if err != nil {
			return out, err
		}
		one.Paused = state.paused
	}
	body, err := one.Body()
	if err != nil {
		return out, err
	}
	if _, err := tx.exec(batchOpenSQL, one.ID[:], one.Name, nullID(one.Parent), body, one.CreatedBy, one.Paused, now()); err != nil {
		return out, err
	}
	if _, err := tx.exec(batchCountNewSQL, one.ID[:]); err != nil {
		return out, err
	}
	found, err = list(tx, scanBatch, batchSQL, one.ID[:])
	return append(found, out)[0], err
}

// CloseBatch closes a batch.
func (s *Store) CloseBatch(ctx context.Context, id sluice.ID, all bool, _ sluice.Act) error {
	return s.write(ctx, "close batch", func(tx runner, _ bool) error { return closeBatch(tx, id, all) })
}

func closeBatch(tx runner, id sluice.ID, all bool) error {
	tree, err := batchTree(tx, id)
	if err != nil {
		return err
	}
	if len(tree) == 0 {
		return sluice.ErrNotFound
	}
	if !all {
		tree = tree[:1]
	}
	for _, id := range tree {
		closed, err := affected(tx.exec(batchCloseSQL, id[:], now()))
		if err == nil && closed > 0 {
			err = lookAtBatch(tx, id, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// OpenBatch stores a new batch through the transaction.
func (e *txEnqueuer) OpenBatch(ctx context.Context, one batch.Batch, _ sluice.Act) (out batch.Batch, err error) {
	err = e.do(ctx, "open batch", func(tx runner) (err error) {
		out, err = openBatch(tx, one)
		return err
	})
	return out, err
}

// CloseBatch closes a batch through the transaction.
func (e *txEnqueuer) CloseBatch(ctx context.Context, id sluice.ID, all bool, _ sluice.Act) error {
	return e.do(ctx, "close batch", func(tx runner) error { return closeBatch(tx, id, all) })
}

// batchTree lists a batch and all batches in it, the batch itself first. None: it is not stored.
func batchTree(tx runner, id sluice.ID) ([]sluice.ID, error) {
	return list(tx, func(rows *sql.Rows) (sluice.ID, error) {
		var id []byte
		err := rows.Scan(&id)
		return idOf(id), err
	}, batchTreeSQL, id[:])
}

// PauseBatch sets why a batch and all batches in it are paused.
func (s *Store) PauseBatch(ctx context.Context, id sluice.ID, reason string, act sluice.Act) error {
	event := audit.EventPause
	if reason == "" {
		event = audit.EventResume
	}
	return s.once(ctx, "pause batch", audit.ObjectBatch, id.String(), act, func(tx runner) error {
		tree, err := batchTree(tx, id)
		if err != nil {
			return err
		}
		if len(tree) == 0 {
			return sluice.ErrNotFound
		}
		for _, id := range tree {
			changed, err := affected(tx.exec(batchPauseSQL, id[:], reason))
			if err == nil && changed > 0 {
				err = tell(tx, sluice.AuditEntry{
					Object: audit.ObjectBatch, Name: id.String(), Event: event, Actor: act.By, Reason: act.Reason, ActID: act.ID,
				})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

//go:embed sql/batch_look_all.sql
var batchLookAllSQL string

// AdvanceBatches looks at batches that have changed, and enqueues the callbacks of those of which something has become.
func (s *Store) AdvanceBatches(ctx context.Context, limit int) (out batch.Advanced, err error) {
	if !s.batchesSeen.Load() { // the first call of the process looks at all
		err := s.write(ctx, "look at all batches", func(tx runner, _ bool) error {
			_, err := tx.exec(batchLookAllSQL)
			return err
		})
		if err != nil {
			return out, err
		}
		s.batchesSeen.Store(true)
	}
	changed := false
	err = s.read(ctx, "look for changed batches", func(tx runner) error {
		_, err := list(tx, func(rows *sql.Rows) (bool, error) { return true, rows.Scan(&changed, &out.Open) }, batchDueSQL)
		return err
	})
	if err != nil || !changed {
		return out, err
	}
	var jobs []sluice.Insert
	var receipts []sluice.Receipt
	err = s.write(ctx, "advance batches", func(tx runner, _ bool) (err error) {
		out.Changes, jobs, receipts, err = advance(tx, limit)
		return err
	})
	if err != nil {
		return batch.Advanced{Open: out.Open}, err
	}
	out.Callbacks = len(jobs)
	s.tally.Enqueued(jobs, receipts)
	return out, nil
}

// advance decides what has become of changed batches, and stores it with the jobs of the callbacks.
func advance(tx runner, limit int) (changes int, jobs []sluice.Insert, receipts []sluice.Receipt, err error) {
	looks, err := list(tx, func(rows *sql.Rows) (look batch.Look, err error) {
		look.Batch, err = scanBatchAnd(rows, &look.Died, &look.Behind, &look.Failed)
		return look, err
	}, batchChangedSQL, limit)
	if err != nil || len(looks) == 0 {
		return 0, nil, nil, err
	}
	ids := make([]sluice.ID, len(looks))
	for i, look := range looks {
		ids[i] = look.Batch.ID
	}
	if _, err := tx.exec(batchSeenSQL, idList(ids)); err != nil {
		return 0, nil, nil, err
	}
	for _, look := range looks {
		made, err := decideBatch(tx, look)
		if err != nil {
			return 0, nil, nil, err
		}
		jobs = append(jobs, made...)
	}
	if len(jobs) > 0 {
		queues, err := listQueues(tx, sluice.QueueFilter{Names: batch.QueuesOf(jobs)})
		if err != nil {
			return 0, nil, nil, err
		}
		receipts, _, err = enqueue(tx, batch.BySettings(jobs, queues), false)
		if err != nil {
			return 0, nil, nil, err
		}
	}
	return len(looks), jobs, receipts, nil
}

// decideBatch stores what has become of a batch, and lets upkeep look at the batch that it is in.
func decideBatch(tx runner, look batch.Look) ([]sluice.Insert, error) {
	before := look.Batch
	after, jobs := look.Decide(before.Now)
	if !after.Changed(before) {
		return nil, nil
	}
	if _, err := tx.exec(batchDecidedSQL, after.ID[:], micros(after.CompletedAt), micros(after.SucceededAt), micros(after.DiedAt)); err != nil {
		return nil, err
	}
	if after.Parent.IsZero() {
		return jobs, nil
	}
	return jobs, lookAtBatch(tx, after.Parent, after.DiedAt != before.DiedAt)
}

// lookAtBatch lets upkeep look at a batch. Died says that a job has died in it.
func lookAtBatch(tx runner, id sluice.ID, died bool) error {
	_, err := tx.exec(batchAddSQL, id[:], 0, 0, 0, 0, died)
	return err
}

// ForgetBatches deletes batches that were complete long ago.
func (s *Store) ForgetBatches(ctx context.Context, age time.Duration, limit int) (gone int, err error) {
	err = s.write(ctx, "forget batches", func(tx runner, _ bool) error {
		old, err := list(tx, func(rows *sql.Rows) (sluice.ID, error) {
			var id []byte
			err := rows.Scan(&id)
			return idOf(id), err
		}, batchOldSQL, now()-age.Microseconds(), limit)
		if err != nil {
			return err
		}
		for _, id := range old {
			for _, text := range []string{batchForgetSQL, batchCountForgetSQL} {
				if _, err := tx.exec(text, id[:]); err != nil {
					return err
				}
			}
		}
		gone = len(old)
		return nil
	})
	return gone, err
}

// RecountBatch counts the jobs of a batch one by one.
func (s *Store) RecountBatch(ctx context.Context, id sluice.ID) (out batch.Recount, err error) {
	err = s.read(ctx, "recount batch", func(tx runner) error {
		found, err := list(tx, scanBatch, batchSQL, id[:])
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return sluice.ErrNotFound
		}
		out = batch.Recount{Batch: found[0]}
		_, err = list(tx, func(rows *sql.Rows) (bool, error) {
			return true, rows.Scan(&out.Unfinished, &out.Ended.Total, &out.Ended.Completed, &out.Ended.Dead, &out.Ended.Cancelled)
		}, batchRecountSQL, id[:])
		return err
	})
	return out, err
}

// batchState says whether jobs can be added to a batch.
type batchState struct {
	known, open bool
	paused      string
}

func stateOfBatch(tx runner, id sluice.ID) (batchState, error) {
	states, err := list(tx, func(rows *sql.Rows) (batchState, error) {
		state := batchState{known: true}
		err := rows.Scan(&state.open, &state.paused)
		return state, err
	}, batchStateSQL, id[:])
	return append(states, batchState{})[0], err
}

// enterBatches finds the jobs whose batches are closed or not stored, unless they are sent again, and returns the jobs,
// of which those of paused batches are held.
func enterBatches(tx runner, jobs []sluice.Insert) ([]sluice.Insert, map[int]error, error) {
	refused := make(map[int]error)
	if !slices.ContainsFunc(jobs, func(j sluice.Insert) bool { return !j.Batch.IsZero() }) {
		return jobs, refused, nil
	}
	at := make(map[sluice.ID]batchState)
	jobs = slices.Clone(jobs)
	for i := range jobs {
		j := &jobs[i]
		if j.Batch.IsZero() {
			continue
		}
		state, read := at[j.Batch]
		if !read {
			var err error
			if state, err = stateOfBatch(tx, j.Batch); err != nil {
				return jobs, nil, err
			}
			at[j.Batch] = state
		}
		if refusal := batch.Refusal(j.Batch, state.known, state.open); refusal != nil {
			sent, err := isStored(tx, j.ID)
			if err != nil {
				return jobs, nil, err
			}
			if !sent {
				refused[i] = refusal
			}
		} else if state.paused != "" && j.Hold == "" {
			j.Hold = batch.HoldReason(j.Batch, state.paused)
		}
	}
	return jobs, refused, nil
}

// counting is the changes of the counts of batches in a transaction. The zero value is none.
type counting struct{ by map[sluice.ID]*batchChange }

// batchChange is the change of one batch.
type batchChange struct {
	total int
	ended map[sluice.State]int
	died  bool
}

func (c *counting) of(id sluice.ID) *batchChange {
	if c.by == nil {
		c.by = make(map[sluice.ID]*batchChange)
	}
	change := c.by[id]
	if change == nil {
		change = &batchChange{ended: make(map[sluice.State]int)}
		c.by[id] = change
	}
	return change
}

// added counts a new job. The zero ID is no batch.
func (c *counting) added(id sluice.ID) {
	if !id.IsZero() {
		c.of(id).total++
	}
}

// add counts jobs that have ended, or with -1 jobs that live again. The zero ID is no batch.
func (c *counting) add(id sluice.ID, outcome sluice.State, jobs int) {
	if id.IsZero() {
		return
	}
	change := c.of(id)
	change.ended[outcome] += jobs
	change.died = change.died || outcome == sluice.StateDead && jobs > 0
}

// put writes the changes, one statement for each batch.
func (c *counting) put(tx runner) error {
	for id, change := range c.by {
		if _, err := tx.exec(batchAddSQL, id[:], change.total, change.ended[sluice.StateCompleted], change.ended[sluice.StateDead],
			change.ended[sluice.StateCancelled], change.died); err != nil {
			return err
		}
	}
	c.by = nil
	return nil
}
