package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
)

//go:embed sql/batch_due.sql
var batchDueSQL string

//go:embed sql/batch_lock.sql
var batchLockSQL string

//go:embed sql/batch_take.sql
var batchTakeSQL string

//go:embed sql/batch_seal.sql
var batchSealSQL string

//go:embed sql/batch_look.sql
var batchLookSQL string

//go:embed sql/batch_decided.sql
var batchDecidedSQL string

//go:embed sql/batch_look_all.sql
var batchLookAllSQL string

// AdvanceBatches adds up changes of batches, and enqueues the callbacks of batches that have completed, succeeded or
// got a first dead job. While nothing has changed, AdvanceBatches only reads once.
func (s *Store) AdvanceBatches(ctx context.Context, limit int) (out batch.Advanced, err error) {
	if err := s.lookAtAllBatches(ctx); err != nil {
		return out, err
	}
	changed := false
	err = s.call(ctx, "look for changed batches", func(ctx context.Context, _ bool) error {
		_, err := list(ctx, s.pool, func(row pgx.CollectableRow) (bool, error) {
			return true, row.Scan(&changed, &out.Open)
		}, batchDueSQL)
		return err
	})
	if err != nil || !changed {
		return out, err
	}
	var done carried
	err = s.call(ctx, "advance batches", func(ctx context.Context, _ bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
			out.Changes, done, err = advance(ctx, tx, limit)
			return err
		})
	})
	if err != nil {
		return batch.Advanced{Open: out.Open}, err
	}
	out.Callbacks = len(done.jobs)
	s.tellCarried(ctx, done)
	return out, nil
}

// lookAtAllBatches makes the first call of the process evaluate all batches that are closed and not complete.
func (s *Store) lookAtAllBatches(ctx context.Context) error {
	if s.batchesSeen.Load() {
		return nil
	}
	err := s.call(ctx, "look at all batches", func(ctx context.Context, _ bool) error { return exec(ctx, s.pool, batchLookAllSQL) })
	s.batchesSeen.Store(err == nil)
	return err
}

// advance adds up changes, decides which batches have completed, succeeded or got a first dead job, and stores the
// decisions with the jobs of the callbacks.
func advance(ctx context.Context, tx pgx.Tx, limit int) (changes int, done carried, err error) {
	if err := exec(ctx, tx, batchLockSQL); err != nil {
		return 0, done, err
	}
	looks, changes, err := takeChanges(ctx, tx, limit)
	if err != nil || len(looks) == 0 {
		return changes, done, err
	}
	d, err := lookAtBatches(ctx, tx, looks)
	if err != nil || len(d.ids)+len(d.again) == 0 {
		return changes, done, err
	}
	if err := exec(ctx, tx, batchDecidedSQL, d.ids, d.completed, d.succeeded, d.died, d.again, d.kinds); err != nil || len(d.jobs) == 0 {
		return changes, done, err
	}
	queues, err := listQueues(ctx, tx, sluice.QueueFilter{Names: batch.QueuesOf(d.jobs)})
	if err != nil {
		return changes, done, err
	}
	done.jobs = batch.BySettings(d.jobs, queues)
	done.stored, err = enqueue(ctx, tx, done.jobs, enqueuing{brief: true})
	return changes, done, err
}

// takeChanges adds up changes, and returns the batches to decide about, by ID. changes is how many it added up.
func takeChanges(ctx context.Context, tx pgx.Tx, limit int) (map[sluice.ID]*batch.Look, int, error) {
	changes := 0
	rows, err := list(ctx, tx, func(row pgx.CollectableRow) (look batch.Look, err error) {
		look.Batch, err = scanBatchAfter(row, &changes, &look.Died)
		return look, err
	}, batchTakeSQL, limit)
	looks := make(map[sluice.ID]*batch.Look)
	for i := range rows {
		if id := rows[i].Batch.ID; !id.IsZero() && rows[i].May() {
			looks[id] = &rows[i]
		}
	}
	return looks, changes, err
}

// decided is the decisions about batches, as batch_decided.sql takes them.
type decided struct {
	ids                        uuidArray
	completed, succeeded, died []*time.Time
	again                      uuidArray // batches to look at again
	kinds                      []string
	jobs                       []sluice.Insert
}

func (d *decided) lookAgain(id sluice.ID, kind string) {
	d.again, d.kinds = append(d.again, id), append(d.kinds, kind)
}

// lookAtBatches decides about batches. Batches that another transaction changes now are left for the next look.
func lookAtBatches(ctx context.Context, tx pgx.Tx, looks map[sluice.ID]*batch.Look) (d decided, err error) {
	var ids, ending []sluice.ID
	for id, look := range looks {
		if ids = append(ids, id); look.MayComplete() {
			ending = append(ending, id)
		}
	}
	sealed, err := locksOf(ctx, tx, batchSealSQL, sortedOnce(ending))
	if err != nil {
		return d, err
	}
	rows, err := query(ctx, tx, batchLookSQL, uuids(sortedOnce(ids)))
	if err != nil {
		return d, err
	}
	var id pgtype.UUID
	var late bool
	var behind, failed int
	_, err = pgx.ForEachRow(rows, []any{&id, &late, &behind, &failed}, func() error {
		look := looks[idOf(id)]
		delete(looks, idOf(id))
		look.Behind, look.Failed, look.Adding = behind, failed, late || look.MayComplete() && !sealed[idOf(id)]
		d.decide(*look, late)
		return nil
	})
	for id, locked := range looks { // another transaction changes them now
		d.lookAgain(id, map[bool]string{true: "died", false: "total"}[locked.Died])
	}
	return d, err
}

// decide adds the decision about a batch. late is true if the batch has changes that are not added up yet.
func (d *decided) decide(look batch.Look, late bool) {
	after, jobs := look.Decide(look.Batch.Now)
	if look.Adding && !late {
		d.lookAgain(after.ID, "total")
	}
	if !after.Changed(look.Batch) {
		return
	}
	d.jobs = append(d.jobs, jobs...)
	d.ids, d.completed = append(d.ids, after.ID), append(d.completed, nullTime(after.CompletedAt))
	d.succeeded, d.died = append(d.succeeded, nullTime(after.SucceededAt)), append(d.died, nullTime(after.DiedAt))
	if after.Parent.IsZero() {
		return
	}
	if after.DiedAt != look.Batch.DiedAt {
		d.lookAgain(after.Parent, "died")
	}
	if after.CompletedAt != look.Batch.CompletedAt || after.SucceededAt != look.Batch.SucceededAt {
		d.lookAgain(after.Parent, "total")
	}
}
