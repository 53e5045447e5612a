package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/schedule"
)

var _ schedule.Store = (*Store)(nil)

//go:embed sql/schedule.sql
var scheduleSQL string

//go:embed sql/schedules.sql
var schedulesSQL string

//go:embed sql/schedules_queue.sql
var schedulesQueueSQL string

//go:embed sql/schedule_save.sql
var scheduleSaveSQL string

//go:embed sql/schedule_delete.sql
var scheduleDeleteSQL string

//go:embed sql/schedule_act.sql
var scheduleActSQL string

//go:embed sql/schedules_due.sql
var schedulesDueSQL string

//go:embed sql/schedules_next.sql
var schedulesNextSQL string

//go:embed sql/schedule_fired.sql
var scheduleFiredSQL string

// Schedule returns a schedule.
func (s *Store) Schedule(ctx context.Context, name string) (schedule.Schedule, error) {
	return lookUp(ctx, s, "look up schedule", scanSchedule, scheduleSQL, name)
}

// Schedules lists schedules by name.
func (s *Store) Schedules(ctx context.Context, filter schedule.Filter) ([]schedule.Schedule, error) {
	var out []schedule.Schedule
	err := s.read(ctx, "list schedules", func(tx runner) (err error) {
		if filter.Queue != "" {
			out, err = list(tx, scanSchedule, schedulesQueueSQL, filter.Queue, filter.After, filter.Limit)
			return err
		}
		out, err = list(tx, scanSchedule, schedulesSQL, filter.After, filter.Limit)
		return err
	})
	return out, err
}

func scanSchedule(rows *sql.Rows) (schedule.Schedule, error) {
	row := schedule.Row{Now: time.UnixMicro(now())}
	var next *int64
	var changed int64
	if err := rows.Scan(&row.Name, &row.Version, &next, &row.Definition, &row.Progress, &changed, &row.ChangedBy, &row.Reason); err != nil {
		return schedule.Schedule{}, err
	}
	row.NextAt, row.ChangedAt = timeOf(next), timeOf(&changed)
	return schedule.FromRow(row)
}

// SaveSchedule stores the definition of a schedule and its audit entry.
func (s *Store) SaveSchedule(ctx context.Context, one schedule.Schedule, act sluice.Act) (schedule.Schedule, error) {
	return save(ctx, s, "save schedule", saving.Schedules, one, act, home[schedule.Schedule]{
		stored: func(tx runner) ([]schedule.Schedule, error) { return list(tx, scanSchedule, scheduleSQL, one.Name) },
		store:  putSchedule,
	})
}

func putSchedule(tx runner, next schedule.Schedule) error {
	definition, progress, err := next.Body()
	if err != nil {
		return err
	}
	_, err = tx.exec(scheduleSaveSQL, next.Name, next.Queue, next.Version, micros(next.NextAt), definition, progress,
		micros(next.ChangedAt), next.ChangedBy, next.Reason)
	return err
}

// DeleteSchedule deletes a schedule and audits this.
func (s *Store) DeleteSchedule(ctx context.Context, name string, act sluice.Act) error {
	return s.strike(ctx, "delete schedule", audit.ObjectSchedule, name, act, deleting(scheduleDeleteSQL, name))
}

// FireSchedules fires the schedules that are due. While none is due, it only reads.
func (s *Store) FireSchedules(ctx context.Context, limit int, checker sluice.PayloadChecker) (fired schedule.Fired, err error) {
	err = s.read(ctx, "look for due schedules", func(tx runner) (err error) {
		fired.Wait, err = untilFire(tx)
		return err
	})
	if err != nil || fired.Wait != 0 {
		return fired, err
	}
	var jobs []sluice.Insert
	var receipts []sluice.Receipt
	err = s.write(ctx, "fire schedules", func(tx runner, _ bool) error {
		due, err := list(tx, scanSchedule, schedulesDueSQL, now(), limit)
		if err != nil {
			return err
		}
		var batch schedule.Batch
		for _, one := range due {
			states, err := statesOf(tx, one.Open())
			if err != nil {
				return err
			}
			d := schedule.Decide(one, one.Now, states)
			batch = append(batch, &d)
		}
		if jobs, receipts, err = s.carryOut(ctx, tx, batch, checker); err != nil {
			return err
		}
		fired = batch.Fired()
		fired.Wait, err = untilFire(tx)
		return err
	})
	if err == nil {
		s.tally.Enqueued(jobs, receipts)
	}
	return fired, err
}

// untilFire returns how long until the next fire is due. Negative: there is none.
func untilFire(tx runner) (time.Duration, error) {
	next, err := list(tx, scanOne[int64], schedulesNextSQL)
	if err != nil || len(next) == 0 {
		return -1, err
	}
	return max(0, time.Duration(next[0]-now())*time.Microsecond), nil
}

// statesOf returns the states of jobs that the store still has.
func statesOf(tx runner, ids []sluice.ID) (map[sluice.ID]sluice.State, error) {
	states := make(map[sluice.ID]sluice.State, len(ids))
	for _, id := range ids {
		at, err := stand(tx, id)
		if err != nil {
			return nil, err
		}
		if at.state != "" {
			states[id] = at.state
		}
	}
	return states, nil
}

// carryOut enqueues and cancels jobs as the decisions about schedules say, stores the schedules, and returns the jobs
// with their receipts.
func (s *Store) carryOut(ctx context.Context, tx runner, batch schedule.Batch, checker sluice.PayloadChecker) (jobs []sluice.Insert, receipts []sluice.Receipt, err error) {
	enter, end := s.room.EnterEach(ctx, roomSourceIn(tx))
	defer func() { end(jobs, receipts) }()
	if names := batch.Queues(); len(names) > 0 {
		queues, err := listQueues(tx, sluice.QueueFilter{Names: names})
		if err != nil {
			return nil, nil, err
		}
		if jobs, err = batch.Jobs(schedule.Rules{Queues: queues, Checker: checker, Enter: enter}); err != nil {
			return nil, nil, err
		}
	}
	if err := cancelFor(tx, batch.Cancel()); err != nil {
		return nil, nil, err
	}
	if len(jobs) > 0 {
		if receipts, _, err = enqueue(tx, jobs, false); err != nil {
			return nil, nil, err
		}
		batch.Receive(receipts)
	}
	for _, d := range batch {
		if err := putFired(tx, d); err != nil {
			return nil, nil, err
		}
	}
	return jobs, receipts, nil
}

// cancelFor cancels the jobs of earlier fires.
func cancelFor(tx runner, ids []sluice.ID) error {
	if len(ids) == 0 {
		return nil
	}
	cancel := sluice.MoveOf(sluice.EventCancel)
	_, err := end(tx, ending{event: cancel.Event, from: cancel.From, ids: ids, act: schedule.CancelAct()})
	return err
}

// putFired stores a schedule after its fire, and audits a pause.
func putFired(tx runner, d *schedule.Decision) error {
	act, paused := d.Paused()
	if !paused {
		progress, err := d.After.Progress.Text()
		if err != nil {
			return err
		}
		_, err = tx.exec(scheduleFiredSQL, d.After.Name, micros(d.After.NextAt), progress)
		return err
	}
	if err := putSchedule(tx, d.After); err != nil {
		return err
	}
	entries, err := saving.Schedules.Entries(&d.Before, d.After, act)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := tell(tx, e); err != nil {
			return err
		}
	}
	return nil
}

// FireSchedule fires a schedule as the act of a person.
func (s *Store) FireSchedule(ctx context.Context, name string, instants []time.Time, act sluice.Act, checker sluice.PayloadChecker) ([]schedule.Fire, error) {
	var d schedule.Decision
	var jobs []sluice.Insert
	var receipts []sluice.Receipt
	err := s.write(ctx, "fire schedule", func(tx runner, _ bool) error {
		found, err := list(tx, scanSchedule, scheduleSQL, name)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return sluice.ErrNotFound
		}
		told, err := list(tx, scanOne[string], scheduleActSQL, act.ID[:], name)
		if err != nil {
			return err
		}
		d = schedule.DecideByHand(found[0], found[0].Now, instants, act)
		if len(told) > 0 && len(instants) > 0 {
			d.Hand, err = schedule.Told(d.Hand, []byte(told[0]))
			return err
		}
		if jobs, receipts, err = s.carryOut(ctx, tx, schedule.Batch{&d}, checker); err != nil {
			return err
		}
		after := d.HandText()
		if after == nil {
			return nil
		}
		return tell(tx, sluice.AuditEntry{
			Object: audit.ObjectSchedule, Name: name, Event: audit.EventFire, Actor: act.By, Reason: act.Reason, ActID: act.ID, After: after,
		})
	})
	if err != nil {
		return nil, err
	}
	s.tally.Enqueued(jobs, receipts)
	return d.Hand, nil
}
