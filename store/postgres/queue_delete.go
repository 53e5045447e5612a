package postgres

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/saving"
)

//go:embed sql/queue_holds.sql
var queueHoldsSQL string

//go:embed sql/queue_finished.sql
var queueFinishedSQL string

//go:embed sql/queue_schedules.sql
var queueSchedulesSQL string

//go:embed sql/queue_exclude.sql
var queueExcludeSQL string

//go:embed sql/queue_patience.sql
var queuePatienceSQL string

//go:embed sql/queue_delete.sql
var queueDeleteSQL string

// DeleteQueue deletes an empty queue. The history is checked before the transaction, because the check may read all
// of it and would keep all processes from storing jobs.
func (s *Store) DeleteQueue(ctx context.Context, name string, act sluice.Act) error {
	var finished int
	err := s.call(ctx, "look at queue", func(ctx context.Context, _ bool) error {
		counted, err := list(ctx, s.pool, pgx.RowTo[int], queueFinishedSQL, name, sluice.QueueHoldsLimit)
		if err == nil {
			finished = counted[0]
		}
		return err
	})
	if err != nil {
		return err
	}
	act = saving.Named(act)
	err = s.once(ctx, "delete queue", audit.ObjectQueue, name, act, func(ctx context.Context, tx pgx.Tx, _ bool) error {
		if err := excludeEnqueues(ctx, tx); err != nil {
			return err
		}
		stored, err := list(ctx, tx, scanQueue, queueLockSQL, name)
		if err != nil {
			return err
		}
		if len(stored) == 0 {
			return sluice.ErrNotFound
		}
		holds, err := holdsOf(ctx, tx, name)
		if err != nil {
			return err
		}
		if holds.Finished = finished; !holds.Empty() {
			return &sluice.QueueNotEmptyError{Queue: name, Holds: holds}
		}
		return exec(ctx, tx, queueDeleteSQL, name, act.By, act.Reason, nullUUID(act.ID))
	})
	if err == nil {
		s.signal(sluice.Signal{Queue: name})
	}
	return err
}

// excludeEnqueues keeps other transactions from storing jobs until the transaction ends. The wait ends soon if a
// transaction that stored jobs stays open.
func excludeEnqueues(ctx context.Context, tx pgx.Tx) error {
	if err := exec(ctx, tx, queuePatienceSQL); err != nil {
		return err
	}
	return exec(ctx, tx, queueExcludeSQL)
}

// holdsOf counts the contents of a queue, without its history.
func holdsOf(ctx context.Context, tx pgx.Tx, name string) (sluice.QueueHolds, error) {
	holds, err := list(ctx, tx, func(row pgx.CollectableRow) (h sluice.QueueHolds, err error) {
		err = row.Scan(&h.Unfinished, &h.OpenRuns)
		return h, err
	}, queueHoldsSQL, name, sluice.QueueHoldsLimit)
	if err != nil {
		return sluice.QueueHolds{}, err
	}
	open, err := list(ctx, tx, scanOperation, operationsOpenSQL, nil, nil)
	if err != nil {
		return sluice.QueueHolds{}, err
	}
	for _, op := range open {
		if op.Query.Queue == name {
			holds[0].Operations = append(holds[0].Operations, op.ID)
		}
	}
	holds[0].Schedules, err = list(ctx, tx, pgx.RowTo[string], queueSchedulesSQL, name, sluice.QueueHoldsLimit)
	return holds[0], err
}
