package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	_ "embed"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

//go:embed sql/queue_holds.sql
var queueHoldsSQL string

//go:embed sql/queue_finished.sql
var queueFinishedSQL string

//go:embed sql/queue_schedules.sql
var queueSchedulesSQL string

//go:embed sql/queue_stored.sql
var queueStoredSQL string

//go:embed sql/queue_delete_queue.sql
var queueDeleteQueueSQL string

//go:embed sql/queue_delete_tenant_limit.sql
var queueDeleteTenantLimitSQL string

//go:embed sql/queue_delete_tenant_queue.sql
var queueDeleteTenantQueueSQL string

//go:embed sql/queue_delete_flow.sql
var queueDeleteFlowSQL string

//go:embed sql/queue_delete_result_cursor.sql
var queueDeleteResultCursorSQL string

//go:embed sql/queue_delete_limit_lane.sql
var queueDeleteLimitLaneSQL string

//go:embed sql/queue_delete_permit.sql
var queueDeletePermitSQL string

//go:embed sql/queue_delete_started.sql
var queueDeleteStartedSQL string

//go:embed sql/queue_delete_wave.sql
var queueDeleteWaveSQL string

//go:embed sql/queue_delete_wave_count.sql
var queueDeleteWaveCountSQL string

//go:embed sql/queue_delete_alert_rule.sql
var queueDeleteAlertRuleSQL string

//go:embed sql/queue_delete_alert.sql
var queueDeleteAlertSQL string

//go:embed sql/queue_delete_alert_silence.sql
var queueDeleteAlertSilenceSQL string

// DeleteQueue deletes an empty queue. The history is checked before the transaction, because the
// check reads all of it and would hold up every other writer.
func (s *Store) DeleteQueue(ctx context.Context, name string, act sluice.Act) error {
	var finished int
	err := s.read(ctx, "look at queue", func(tx runner) error {
		counted, err := list(tx, scanOne[int], queueFinishedSQL, name, sluice.QueueHoldsLimit)
		if err == nil {
			finished = counted[0]
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.strike(ctx, "delete queue", audit.ObjectQueue, name, act, func(tx runner) (int64, error) {
		stored, err := list(tx, scanOne[int], queueStoredSQL, name)
		if err != nil || len(stored) == 0 {
			return 0, err
		}
		holds, err := holdsOf(tx, name)
		if err != nil {
			return 0, err
		}
		if holds.Finished = finished; !holds.Empty() {
			return 0, &sluice.QueueNotEmptyError{Queue: name, Holds: holds}
		}
		for _, text := range []string{queueDeleteQueueSQL, queueDeleteTenantLimitSQL, queueDeleteTenantQueueSQL, queueDeleteFlowSQL, queueDeleteResultCursorSQL, queueDeleteLimitLaneSQL, queueDeletePermitSQL, queueDeleteStartedSQL, queueDeleteWaveSQL, queueDeleteWaveCountSQL, queueDeleteAlertRuleSQL, queueDeleteAlertSQL, queueDeleteAlertSilenceSQL} {
			if _, err := tx.exec(text, name); err != nil {
				return 0, err
			}
		}
		tx.signal(sluice.Signal{Queue: name})
		return 1, nil
	})
}

// holdsOf counts the contents of a queue, without its history.
func holdsOf(tx runner, name string) (sluice.QueueHolds, error) {
	holds, err := list(tx, func(rows *sql.Rows) (h sluice.QueueHolds, err error) {
		err = rows.Scan(&h.Unfinished, &h.OpenRuns)
		return h, err
	}, queueHoldsSQL, name, sluice.QueueHoldsLimit)
	if err != nil {
		return sluice.QueueHolds{}, err
	}
	open, err := list(tx, scanOperation, operationsOpenSQL, bytes.Repeat([]byte{0xff}, 17), -1)
	if err != nil {
		return sluice.QueueHolds{}, err
	}
	for _, op := range open {
		if op.Query.Queue == name {
			holds[0].Operations = append(holds[0].Operations, op.ID)
		}
	}
	holds[0].Schedules, err = list(tx, scanOne[string], queueSchedulesSQL, name, sluice.QueueHoldsLimit)
	return holds[0], err
}

// queuesGone reports whether a queue of jobs was deleted after its settings were read.
func queuesGone(tx runner, jobs []sluice.Insert) (bool, error) {
	seen := make(map[string]bool)
	for i := range jobs {
		if !jobs[i].Known || seen[jobs[i].Queue] {
			continue
		}
		seen[jobs[i].Queue] = true
		if stored, err := list(tx, scanOne[int], queueStoredSQL, jobs[i].Queue); err != nil || len(stored) == 0 {
			return true, err
		}
	}
	return false, nil
}
