package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/saving"
	"github.com/sluice-queue/sluice/schedule"
)

var _ schedule.Store = (*Store)(nil)

// Schedule returns a schedule.
func (s *Store) Schedule(ctx context.Context, name string) (schedule.Schedule, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return schedule.Schedule{}, err
	}
	defer leave()
	return s.schedule(name)
}

func (s *Store) schedule(name string) (schedule.Schedule, error) {
	found, known := s.schedules[name]
	if !known {
		return found, sluice.ErrNotFound
	}
	found.Now = s.now()
	return found, nil
}

// Schedules lists schedules by name.
func (s *Store) Schedules(ctx context.Context, filter schedule.Filter) ([]schedule.Schedule, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []schedule.Schedule
	for _, one := range byName(s.schedules, func(s schedule.Schedule) string { return s.Name }) {
		if one.Name > filter.After && (filter.Queue == "" || one.Queue == filter.Queue) {
			one.Now = s.now()
			out = append(out, one)
		}
	}
	return out[:min(len(out), filter.Limit)], nil
}

// SaveSchedule stores the definition of a schedule.
func (s *Store) SaveSchedule(ctx context.Context, one schedule.Schedule, act sluice.Act) (schedule.Schedule, error) {
	return save(ctx, s, saving.Schedules, one, act, in(s.schedules, one.Name))
}

// DeleteSchedule deletes a schedule.
func (s *Store) DeleteSchedule(ctx context.Context, name string, act sluice.Act) error {
	return s.strike(ctx, audit.ObjectSchedule, name, act, func() error { return remove(s.schedules, name) })
}

// FireSchedules fires the schedules that are due.
func (s *Store) FireSchedules(ctx context.Context, limit int, checker sluice.PayloadChecker) (schedule.Fired, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return schedule.Fired{}, err
	}
	defer leave()
	now := s.now()
	due := slices.SortedFunc(maps.Values(s.schedules), func(a, b schedule.Schedule) int { return a.NextAt.Compare(b.NextAt) })
	due = slices.DeleteFunc(due, func(s schedule.Schedule) bool { return s.NextAt.IsZero() || s.NextAt.After(now) })
	var batch schedule.Batch
	for _, one := range due[:min(len(due), limit)] {
		d := schedule.Decide(one, now, s.states(one.Open()))
		batch = append(batch, &d)
	}
	if len(batch) > 0 {
		if err := s.carryOut(ctx, batch, checker); err != nil {
			return schedule.Fired{}, err
		}
	}
	fired := batch.Fired()
	fired.Wait = s.untilFire(now)
	return fired, nil
}

// untilFire returns how long until the next fire is due. Negative: there is none.
func (s *Store) untilFire(now time.Time) time.Duration {
	wait := time.Duration(-1)
	for _, one := range s.schedules {
		if left := max(0, one.NextAt.Sub(now)); !one.NextAt.IsZero() && (wait < 0 || left < wait) {
			wait = left
		}
	}
	return wait
}

// states returns the states of jobs that the store still has.
func (s *Store) states(ids []sluice.ID) map[sluice.ID]sluice.State {
	states := make(map[sluice.ID]sluice.State, len(ids))
	for _, id := range ids {
		if j := s.jobs[id]; j != nil {
			states[id] = j.State
		}
	}
	return states
}

// carryOut enqueues and cancels jobs as the decisions about schedules say.
func (s *Store) carryOut(ctx context.Context, batch schedule.Batch, checker sluice.PayloadChecker) (err error) {
	enter, end := s.room.EnterEach(ctx, s.roomSourceIn())
	var receipts []sluice.Receipt
	jobs, err := batch.Jobs(schedule.Rules{Queues: slices.Collect(maps.Values(s.queues)), Checker: checker, Enter: enter})
	defer func() { end(jobs, receipts) }()
	if err != nil {
		return err
	}
	for _, id := range batch.Cancel() {
		if j := s.jobs[id]; j != nil && sluice.MoveOf(sluice.EventCancel).Allows(j.State) {
			s.noteStray(j)
			s.finish(j, sluice.EventCancel, schedule.CancelAct())
		}
	}
	for _, job := range jobs {
		receipts = append(receipts, s.enqueue(job))
	}
	for _, queue := range batch.Queues() {
		s.signal(sluice.Signal{Queue: queue})
	}
	s.tally.Enqueued(jobs, receipts)
	batch.Receive(receipts)
	for _, d := range batch {
		if act, paused := d.Paused(); paused {
			entries, err := saving.Schedules.Entries(&d.Before, d.After, act)
			if err != nil {
				return err
			}
			for _, e := range entries {
				s.add(e)
			}
		}
		s.schedules[d.After.Name] = d.After
	}
	return nil
}

// FireSchedule fires a schedule as the act of a person.
func (s *Store) FireSchedule(ctx context.Context, name string, instants []time.Time, act sluice.Act, checker sluice.PayloadChecker) ([]schedule.Fire, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	one, err := s.schedule(name)
	if err != nil {
		return nil, err
	}
	d := schedule.DecideByHand(one, s.now(), instants, act)
	for _, e := range s.audit {
		if !act.ID.IsZero() && e.ActID == act.ID && e.Object == audit.ObjectSchedule && e.Name == name && e.Event == audit.EventFire && len(instants) > 0 {
			return schedule.Told(d.Hand, e.After)
		}
	}
	if err := s.carryOut(ctx, schedule.Batch{&d}, checker); err != nil {
		return nil, err
	}
	if after := d.HandText(); after != nil {
		s.add(fireEntry(name, after, act))
	}
	return d.Hand, nil
}

func fireEntry(name string, after []byte, act sluice.Act) sluice.AuditEntry {
	return sluice.AuditEntry{
		Object: audit.ObjectSchedule, Name: name, Event: audit.EventFire, Actor: act.By, Reason: act.Reason, ActID: act.ID, After: after,
	}
}
