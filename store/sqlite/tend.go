package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/late.sql
var lateSQL string

//go:embed sql/max_recoveries.sql
var maxRecoveriesSQL string

//go:embed sql/expired.sql
var expiredSQL string

//go:embed sql/repair_blocked.sql
var repairBlockedSQL string

//go:embed sql/limit_unpark_strays.sql
var limitUnparkStraysSQL string

//go:embed sql/repair_queues.sql
var repairQueuesSQL string

//go:embed sql/forget_holders.sql
var forgetHoldersSQL string

//go:embed sql/page_start.sql
var pageStartSQL string

// refused reports whether an error concerns one job and is no fault of the store.
func refused(err error) bool {
	return errors.Is(err, sluice.ErrDuplicate) || errors.Is(err, sluice.ErrInvalid)
}

// Recover requeues jobs whose lease has ended, or buries them as poison.
func (s *Store) Recover(ctx context.Context, queue string, limit int, by string) (sluice.Recovered, error) {
	var out sluice.Recovered
	err := s.write(ctx, "recover", func(tx runner, _ bool) (err error) {
		out, err = recoverLate(tx, queue, limit, by, s.steady.at())
		return err
	})
	if err == nil {
		s.tally.Recovered(queue, out)
	}
	return out, err
}

func recoverLate(tx runner, queue string, limit int, by string, at int64) (out sluice.Recovered, err error) {
	late, err := list(tx, scanOne[[]byte], lateSQL, queue, at, limit)
	if err != nil || len(late) == 0 {
		return out, err
	}
	most := sluice.DefaultSettings().MaxRecoveries
	if stored, err := list(tx, scanOne[int], maxRecoveriesSQL, queue); err != nil {
		return out, err
	} else if len(stored) > 0 {
		most = stored[0]
	}
	rows, err := heldRows(tx, idsOf(late))
	if err != nil {
		return out, err
	}
	finish := newFinisher(tx)
	for _, row := range rows {
		row.recoveries++
		if row.recoveries < most {
			out.Requeued++
			err = back(tx, row, sluice.EventRecover, sluice.Act{By: by, Reason: "the lease of " + row.holder + " ran out"}, nil, nil)
		} else {
			out.Buried++
			err = finish.add(row, ended{event: sluice.EventBury, act: sluice.Act{By: by, Reason: "recoveries spent"}, failure: storing.PoisonError(row.recoveries)})
		}
		if err != nil {
			return out, err
		}
	}
	return out, finish.flush()
}

func idsOf(raw [][]byte) []sluice.ID {
	ids := make([]sluice.ID, len(raw))
	for i := range raw {
		ids[i] = idOf(raw[i])
	}
	return ids
}

// Expire cancels queued jobs whose expires_at has passed.
func (s *Store) Expire(ctx context.Context, limit int, by string) (int, error) {
	var rows map[sluice.ID]held
	err := s.write(ctx, "expire", func(tx runner, _ bool) error {
		found, err := list(tx, scanOne[[]byte], expiredSQL, now(), limit)
		if err != nil || len(found) == 0 {
			return err
		}
		rows, err = end(tx, ending{
			event: sluice.EventCancel, from: []sluice.State{sluice.StateQueued}, ids: idsOf(found),
			act: sluice.Act{By: by, Reason: "expired"},
		})
		return err
	})
	return len(rows), err
}

// Repair repairs states that no other method handles: jobs of queues without settings, and jobs whose
// blocker has ended. It also ends limits of tenants whose time is over, and deletes old holders.
func (s *Store) Repair(ctx context.Context, by string) (int, error) {
	freed, err := s.repairBlocked(ctx)
	if err != nil {
		return freed, err
	}
	repaired := 0
	err = s.write(ctx, "repair", func(tx runner, _ bool) error {
		orphans, err := list(tx, scanOne[string], repairQueuesSQL)
		if err != nil {
			return err
		}
		if err := makeQueues(tx, orphans, sluice.Act{By: by, Reason: "jobs wait in it, and it had no settings"}); err != nil {
			return err
		}
		repaired = len(orphans)
		if err := endTenantLimits(tx, by); err != nil {
			return err
		}
		if _, err = tx.exec(forgetHoldersSQL, now()-time.Hour.Microseconds()); err != nil {
			return err
		}
		_, err = tx.exec(instructionForgetSQL, now()-time.Hour.Microseconds())
		return err
	})
	return freed + repaired, err
}

// repairSlice is how many blocked jobs one call of repairBlocked reads.
const repairSlice = 20_000

// repairBlocked finds jobs whose blocker has ended in one slice of the blocked jobs, and evaluates
// them again.
func (s *Store) repairBlocked(ctx context.Context) (repaired int, err error) {
	type blocker struct {
		seq   int64
		ended bool
		count int
	}
	var ended []int64
	err = s.read(ctx, "repair", func(tx runner) error {
		blockers, err := list(tx, func(rows *sql.Rows) (b blocker, err error) {
			err = rows.Scan(&b.seq, &b.ended, &b.count)
			return b, err
		}, repairBlockedSQL, s.repairFrom.Load(), repairSlice)
		looked, next := 0, int64(0)
		ended = nil
		for _, b := range blockers {
			looked, next = looked+b.count, b.seq
			if b.ended {
				ended = append(ended, b.seq)
			}
		}
		if looked < repairSlice {
			next = 0
		}
		s.repairFrom.Store(next)
		return err
	})
	for after, more := int64(0), len(ended) > 0; more && err == nil; {
		var out looks
		var queues []string // of jobs that were let in
		err = s.write(ctx, "repair", func(tx runner, _ bool) (err error) {
			if queues, err = list(tx, scanOne[string], limitUnparkStraysSQL, seqList(ended)); err != nil {
				return err
			}
			for _, queue := range queues {
				tx.signal(sluice.Signal{Queue: queue})
			}
			if out, err = lookAtAll(tx, ended, nil, after, unblockLimit); err != nil {
				return err
			}
			return unblock(tx, out.cancelled, nil)
		})
		repaired += len(queues) + out.changed
		after, more = out.last, out.looked == unblockLimit
	}
	return repaired, err
}

// pageStart returns the number after which a list continues. 0: it begins at the front.
func pageStart(tx runner, after sluice.ID) (int64, error) {
	if after.IsZero() {
		return 0, nil
	}
	seqs, err := list(tx, scanOne[int64], pageStartSQL, after[:])
	if err != nil {
		return 0, err
	}
	return seqs[0], nil
}
