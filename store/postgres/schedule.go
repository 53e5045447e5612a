package postgres

import (
	"bytes"
	"context"
	_ "embed"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/schedule"
)

var _ schedule.Store = (*Store)(nil)

//go:embed sql/schedule.sql
var scheduleSQL string

//go:embed sql/schedule_lock.sql
var scheduleLockSQL string

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

//go:embed sql/schedules_fired.sql
var schedulesFiredSQL string

// Schedule returns a schedule.
func (s *Store) Schedule(ctx context.Context, name string) (schedule.Schedule, error) {
	return lookUp(ctx, s, "look up schedule", scanSchedule, scheduleSQL, name)
}

// Schedules lists schedules by name.
func (s *Store) Schedules(ctx context.Context, filter schedule.Filter) ([]schedule.Schedule, error) {
	var out []schedule.Schedule
	err := s.call(ctx, "list schedules", func(ctx context.Context, _ bool) (err error) {
		if filter.Queue != "" {
			out, err = list(ctx, s.pool, scanSchedule, schedulesQueueSQL, filter.Queue, filter.After, filter.Limit)
			return err
		}
		out, err = list(ctx, s.pool, scanSchedule, schedulesSQL, filter.After, filter.Limit)
		return err
	})
	return out, err
}

func scanSchedule(row pgx.CollectableRow) (schedule.Schedule, error) {
	var r schedule.Row
	var next *time.Time
	if err := row.Scan(&r.Name, &r.Version, &next, &r.Definition, &r.Progress, &r.ChangedAt, &r.ChangedBy, &r.Reason, &r.Now); err != nil {
		return schedule.Schedule{}, err
	}
	if next != nil {
		r.NextAt = *next
	}
	return schedule.FromRow(r)
}

// SaveSchedule stores the definition of a schedule and its audit entry.
func (s *Store) SaveSchedule(ctx context.Context, one schedule.Schedule, act sluice.Act) (schedule.Schedule, error) {
	act = saving.Named(act)
	var next schedule.Schedule
	kind := saving.Schedules
	kind.Next = func(schedule.Schedule, *schedule.Schedule, time.Time, sluice.Act) schedule.Schedule { return next }
	return save(ctx, s, "save schedule", kind, one, act, home[schedule.Schedule]{
		always: true,
		stored: func(ctx context.Context, db rowsQuerier) ([]schedule.Schedule, error) {
			return list(ctx, db, scanSchedule, scheduleLockSQL, one.Name)
		},
		store: func(ctx context.Context, tx pgx.Tx, stored *schedule.Schedule) (at time.Time, err error) {
			if stored != nil {
				at = stored.Now
			} else if at, err = readNow(ctx, tx); err != nil {
				return at, err
			}
			next = one.Stored(stored, at, act)
			return at, putSchedule(ctx, tx, next)
		},
	})
}

// putSchedule stores the next version of a schedule.
func putSchedule(ctx context.Context, tx pgx.Tx, next schedule.Schedule) error {
	definition, progress, err := next.Body()
	if err != nil {
		return err
	}
	_, err = savedRow(ctx, tx, scheduleSaveSQL, next.Name, next.Queue, next.Version, nullTime(next.NextAt), definition, progress,
		next.ChangedAt, next.ChangedBy, next.Reason)
	return err
}

// DeleteSchedule deletes a schedule and audits this.
func (s *Store) DeleteSchedule(ctx context.Context, name string, act sluice.Act) error {
	return s.strike(ctx, "delete schedule", audit.ObjectSchedule, name, act, scheduleDeleteSQL, name, act.By, act.Reason, nullUUID(act.ID))
}

// FireSchedules fires the schedules that are due. While none is due, it is one read.
func (s *Store) FireSchedules(ctx context.Context, limit int, checker sluice.PayloadChecker) (fired schedule.Fired, err error) {
	from := s.fires.begin()
	wait, err := s.untilFire(ctx, from)
	if err != nil || wait != 0 {
		return schedule.Fired{Wait: wait}, err
	}
	var done carried
	err = s.call(ctx, "fire schedules", func(ctx context.Context, _ bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			due, err := list(ctx, tx, scanSchedule, schedulesDueSQL, from, limit)
			if err != nil {
				return err
			}
			at, err := standings(ctx, tx, schedule.Open(due))
			if err != nil {
				return err
			}
			states := make(map[sluice.ID]sluice.State, len(at))
			for id, standing := range at {
				states[id] = standing.state
			}
			var batch schedule.Batch
			for _, one := range due {
				d := schedule.Decide(one, one.Now, states)
				batch = append(batch, &d)
			}
			done, err = s.carryOut(ctx, tx, batch, checker)
			fired = batch.Fired()
			return err
		})
	})
	if err != nil {
		return schedule.Fired{}, err
	}
	s.tellCarried(ctx, done)
	fired.Wait, err = s.untilFire(ctx, from)
	return fired, err
}

// untilFire returns how long until the next fire from an instant on is due. Negative: there is none.
func (s *Store) untilFire(ctx context.Context, from time.Time) (wait time.Duration, err error) {
	wait = -1
	err = s.call(ctx, "look for due schedules", func(ctx context.Context, _ bool) error {
		_, err := list(ctx, s.pool, func(row pgx.CollectableRow) (found struct{}, err error) {
			var at time.Time
			var ahead int64
			if err := row.Scan(&at, &ahead); err != nil {
				return found, err
			}
			wait = time.Duration(ahead) * time.Microsecond
			s.fires.seen(at, at.Add(-wait))
			wait = max(0, wait)
			return found, nil
		}, schedulesNextSQL, from)
		return err
	})
	return wait, err
}

// fireLowWater remembers the instant of the next fire, so that searches begin there. While an old transaction is open, the
// index keeps the entries of past fires. A search from the first entry would walk over more of them with each fire.
type fireLowWater struct {
	mu      sync.Mutex
	at      time.Time // no schedule fires before, as far as this process knows
	wholeAt time.Time // when the last search began at the first entry
}

const (
	// fireSlack is how far before the low-water mark searches begin. A search then still finds a schedule whose change
	// commits up to fireSlack late, and works after the store's clock is set back by up to fireSlack.
	fireSlack = time.Minute
	// wholeSearch is how often a search begins at the first entry, whatever the low-water mark says.
	wholeSearch = time.Minute
)

// begin returns the low-water mark for the next search.
func (f *fireLowWater) begin() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.IsZero() || time.Since(f.wholeAt) > wholeSearch {
		f.wholeAt = time.Now()
		return time.Time{}
	}
	return f.at.Add(-fireSlack)
}

// seen sets the low-water mark to the next fire, or to the store's present time, because a new schedule may fire from then on.
func (f *fireLowWater) seen(next, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at = next; now.Before(next) {
		f.at = now
	}
}

// carried is the jobs that a transaction enqueued and cancelled for schedules or batches.
type carried struct {
	jobs      []sluice.Insert
	stored    enqueued
	cancelled endings
}

// carryOut enqueues and cancels jobs as the decisions about schedules say, and stores the schedules.
func (s *Store) carryOut(ctx context.Context, tx pgx.Tx, batch schedule.Batch, checker sluice.PayloadChecker) (done carried, err error) {
	enter, end := s.room.EnterEach(ctx, s.roomSourceIn(tx))
	defer func() { end(done.jobs, done.stored.receipts) }()
	if names := batch.Queues(); len(names) > 0 {
		queues, err := listQueues(ctx, tx, sluice.QueueFilter{Names: names})
		if err != nil {
			return done, err
		}
		if done.jobs, err = batch.Jobs(schedule.Rules{Queues: queues, Checker: checker, Enter: enter}); err != nil {
			return done, err
		}
	}
	if ids := batch.Cancel(); len(ids) > 0 {
		if done.cancelled, err = cancelFor(ctx, tx, ids); err != nil {
			return done, err
		}
	}
	if len(done.jobs) > 0 {
		if err := s.noteAwaitedIn(ctx, tx, done.jobs); err != nil {
			return done, err
		}
		if done.stored, err = enqueue(ctx, tx, done.jobs, enqueuing{brief: true}); err != nil {
			return done, err
		}
		batch.Receive(done.stored.receipts)
	}
	return done, putFired(ctx, tx, batch)
}

// cancelFor cancels the jobs of earlier fires.
func cancelFor(ctx context.Context, tx pgx.Tx, ids []sluice.ID) (endings, error) {
	act := schedule.CancelAct()
	e := actEnding{event: sluice.EventCancel, ids: slices.Clone(ids)}
	slices.SortFunc(e.ids, func(a, b sluice.ID) int { return bytes.Compare(a[:], b[:]) })
	for range ids {
		e.reasons, e.actors = append(e.reasons, act.Reason), append(e.actors, act.By)
	}
	return endByAct(ctx, tx, e)
}

// putFired stores schedules after their fires, and audits pauses.
func putFired(ctx context.Context, tx pgx.Tx, batch schedule.Batch) error {
	var names, progress []string
	var next []*time.Time
	for _, d := range batch {
		if act, paused := d.Paused(); paused {
			if err := putSchedule(ctx, tx, d.After); err != nil {
				return err
			}
			entries, err := saving.Schedules.Entries(&d.Before, d.After, act)
			if err != nil {
				return err
			}
			if err := noteEntries(ctx, tx, entries); err != nil {
				return err
			}
			continue
		}
		text, err := d.After.Progress.Text()
		if err != nil {
			return err
		}
		names, next, progress = append(names, d.After.Name), append(next, nullTime(d.After.NextAt)), append(progress, text)
	}
	if len(names) == 0 {
		return nil
	}
	return exec(ctx, tx, schedulesFiredSQL, names, next, progress)
}

// tellCarried counts and signals the jobs that a committed transaction enqueued and cancelled for schedules or batches.
func (s *Store) tellCarried(ctx context.Context, done carried) {
	if len(done.cancelled.rows) > 0 {
		s.acted(sluice.EventCancel, done.cancelled.rows)
		s.unblock(ctx, done.cancelled.awaited)
	}
	if len(done.jobs) == 0 {
		return
	}
	s.tellEnqueued(done.jobs, done.stored.receipts)
	s.disturbLowWater(done.jobs)
	s.signalQueues(queuesOf(done.jobs))
	s.unblockLater(done.jobs, done.stored.behind)
}

// FireSchedule fires a schedule as the act of a person.
func (s *Store) FireSchedule(ctx context.Context, name string, instants []time.Time, act sluice.Act, checker sluice.PayloadChecker) ([]schedule.Fire, error) {
	act = saving.Named(act)
	var d schedule.Decision
	var done carried
	err := s.call(ctx, "fire schedule", func(ctx context.Context, _ bool) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			found, err := list(ctx, tx, scanSchedule, scheduleLockSQL, name)
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return sluice.ErrNotFound
			}
			told, err := list(ctx, tx, pgx.RowTo[string], scheduleActSQL, [16]byte(act.ID), name)
			if err != nil {
				return err
			}
			d = schedule.DecideByHand(found[0], found[0].Now, instants, act)
			if len(told) > 0 && len(instants) > 0 {
				d.Hand, err = schedule.Told(d.Hand, []byte(told[0]))
				return err
			}
			if done, err = s.carryOut(ctx, tx, schedule.Batch{&d}, checker); err != nil {
				return err
			}
			after := d.HandText()
			if after == nil {
				return nil
			}
			return noteEntries(ctx, tx, []sluice.AuditEntry{{
				Object: audit.ObjectSchedule, Name: name, Event: audit.EventFire, Actor: act.By, Reason: act.Reason, ActID: act.ID, After: after,
			}})
		})
	})
	if err != nil {
		return nil, err
	}
	s.tellCarried(ctx, done)
	return d.Hand, nil
}
