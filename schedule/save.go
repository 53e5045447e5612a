package schedule

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Stored returns the schedule as its next version, stored at an instant of the store's clock. Stores call it. Nil stored:
// the schedule is new.
func (s Schedule) Stored(stored *Schedule, at time.Time, act sluice.Act) Schedule {
	at = feature.Instant(at)
	s.Version++
	s.ChangedAt, s.ChangedBy, s.Reason, s.Now = at, act.By, act.Reason, at
	s.Progress = Progress{seed: rand.Text()}
	if stored != nil {
		s.Progress = stored.clone().Progress
		if stored.Paused && !s.Paused {
			s.Progress.Failures = 0
		}
	}
	if s.Paused {
		s.Progress.Resumed = time.Time{} // a later resume counts
	}
	s.NextAt = s.nextAt(stored, at)
	return s
}

// nextAt returns the next fire of a schedule that replaces another now. A fire that is due stays due, so a change in its
// second neither loses nor repeats it.
func (s Schedule) nextAt(stored *Schedule, now time.Time) time.Time {
	if s.Paused || s.spent() {
		return time.Time{}
	}
	t, err := s.timing()
	if err != nil {
		return time.Time{}
	}
	if stored != nil && !stored.NextAt.IsZero() && !stored.NextAt.After(now) && !stored.NextAt.Before(s.Start) && (s.End.IsZero() || !stored.NextAt.After(s.End)) {
		return stored.NextAt
	}
	if through := s.Progress.Through; through.After(now) { // the clock was set back, or was read before a fire
		now = through
	}
	at, _ := t.next(now)
	return at
}

// Set stores a definition under a name, as an operator. A schedule that a program has declared is overridden from then on:
// see [Lift]. The queue is made if it is new; see package admission.
func Set(ctx context.Context, store sluice.Store, name string, definition Definition, act sluice.Act) (Schedule, error) {
	return Change(ctx, store, name, act, func(d *Definition) error {
		*d = definition
		return nil
	})
}

// Change is [Set] with what change makes of the stored definition, so that changes of other fields at the same time stay. The
// definition of a new schedule is empty. If somebody else changes the schedule in the meantime, Change calls change again.
func Change(ctx context.Context, store sluice.Store, name string, act sluice.Act, change func(*Definition) error) (Schedule, error) {
	return edit(ctx, store, name, true, act, func(s *Schedule) error {
		if err := sluice.CheckGiven("change", change); err != nil {
			return err
		}
		d := s.Definition.clone()
		if err := change(&d); err != nil {
			return err
		}
		s.Definition = d.usual()
		return nil
	})
}

// Pause stops the fires of a schedule until [Resume]. Jobs that are enqueued stay. The note says why, and shows on the
// schedule.
func Pause(ctx context.Context, store sluice.Store, name, note string, act sluice.Act) (Schedule, error) {
	return edit(ctx, store, name, false, act, func(s *Schedule) error {
		s.Paused, s.Note = true, note
		return nil
	})
}

// Resume lets a paused schedule go on with its next fire. It makes up for none of those in the pause.
func Resume(ctx context.Context, store sluice.Store, name string, act sluice.Act) (Schedule, error) {
	return edit(ctx, store, name, false, act, func(s *Schedule) error {
		s.Paused, s.Note = false, ""
		return nil
	})
}

// Lift gives an overridden schedule the definition that a program declared last. From then on, deploys change it again. A
// schedule that no program has declared is a [sluice.ErrNotAllowed].
func Lift(ctx context.Context, store sluice.Store, name string, act sluice.Act) (Schedule, error) {
	return edit(ctx, store, name, false, act, func(s *Schedule) error {
		if s.Declared == nil {
			return fmt.Errorf("no program has declared it, so it has no override: %w", sluice.ErrNotAllowed)
		}
		s.Definition = *s.Declared
		return nil
	})
}

// Undo restores a schedule from before its last change, with its pause. Undo is itself an audited change, and a second Undo
// undoes it. If the audit has no change since the schedule was made, the error is a [sluice.ErrNotFound].
func Undo(ctx context.Context, store sluice.Store, name string, act sluice.Act) (Schedule, error) {
	return edit(ctx, store, name, false, act, func(s *Schedule) error {
		changes := sluice.AuditFilter{Object: audit.ObjectSchedule, Name: name, Event: audit.EventChange}
		found, err := feature.LastChange(ctx, store, changes, audit.EventDelete, func(change sluice.AuditEntry) (bool, error) {
			var before content
			if err := json.Unmarshal(change.Before, &before); err != nil {
				return false, err
			}
			restored := *s
			if err := restored.set(before); err != nil {
				return false, err
			}
			restored.Definition, restored.Declared = restored.usual(), s.Declared // only a program declares
			if same(*s, restored) {
				return false, nil // a program declared something, which an operator overrides
			}
			*s = restored
			return true, nil
		})
		if err == nil && !found {
			err = fmt.Errorf("it has no change to undo in the audit: %w", sluice.ErrNotFound)
		}
		return err
	})
}

// Delete deletes a schedule. Its jobs stay. An unknown name is a [sluice.ErrNotFound]. A program that declares the schedule
// makes it again at its next start; pause such a schedule instead.
func Delete(ctx context.Context, store sluice.Store, name string, act sluice.Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	return about(name, Given(store).DeleteSchedule(ctx, name, act))
}

// Ensure stores the schedules that a program declares, and returns them as they are stored. A program calls it at its
// start.
//
// A new schedule is created, and a changed declaration changes its schedule. But a schedule that an operator has changed
// stays as the operator left it until [Lift]: then Overridden of the result is true, and Declared has the new declaration. A
// pause stays too. Ensure deletes no schedule.
func Ensure(ctx context.Context, store sluice.Store, schedules []Schedule, act sluice.Act) ([]Schedule, error) {
	stored := make([]Schedule, 0, len(schedules))
	for _, s := range schedules {
		declared := s.usual()
		one, err := edit(ctx, store, s.Name, true, each(act), func(s *Schedule) error {
			if s.Version == 0 || s.Declared != nil && !s.Overridden() {
				s.Definition = declared
			}
			s.Declared = &declared
			return nil
		})
		if err != nil {
			return stored, err
		}
		stored = append(stored, one)
	}
	return stored, nil
}

// each returns an act for one of several schedules.
func each(act sluice.Act) sluice.Act {
	act.ID = sluice.ID{}
	return act
}

// edit changes a schedule. It stores nothing if the schedule stays equal. If somebody else changes the schedule in the
// meantime, edit begins again.
func edit(ctx context.Context, store sluice.Store, name string, mayBeNew bool, act sluice.Act, change func(*Schedule) error) (Schedule, error) {
	if err := act.Check(); err != nil {
		return Schedule{}, err
	}
	for {
		s, err := Given(store).Schedule(ctx, name)
		if errors.Is(err, sluice.ErrNotFound) && mayBeNew && sluice.CheckGiven("store", store) == nil {
			s, err = Schedule{Name: name}, nil
		}
		if err != nil {
			return Schedule{}, about(name, err)
		}
		before := s
		if err := change(&s); err != nil {
			return Schedule{}, about(name, err)
		}
		if before.Version != 0 && same(before, s) {
			return before, nil
		}
		saved, err := Save(ctx, store, s, act)
		if !errors.Is(err, sluice.ErrConflict) {
			return saved, err
		}
	}
}

// Save stores a schedule as the caller has read and changed it, but for its progress, which stays. If somebody else has
// changed the schedule since, the error is a [sluice.ErrConflict]. [Set] and the other verbs read, change and store until
// nobody else has.
func Save(ctx context.Context, store sluice.Store, s Schedule, act sluice.Act) (Schedule, error) {
	store = sluice.GivenStore(store)
	s.Definition = s.usual()
	if err := errors.Join(act.Check(), s.check()); err != nil {
		return Schedule{}, about(s.Name, err)
	}
	if err := admit(ctx, store, s.Queue, act); err != nil {
		return Schedule{}, about(s.Name, err)
	}
	saved, err := Given(store).SaveSchedule(ctx, s, act)
	return saved, about(s.Name, err)
}

// same reports whether people's parts of two schedules are equal.
func same(a, b Schedule) bool {
	one, err := json.Marshal(a.content())
	if err != nil {
		return false
	}
	two, err := json.Marshal(b.content())
	return err == nil && string(one) == string(two)
}

// admit makes the queue of a schedule, if queues may be made so.
func admit(ctx context.Context, store sluice.Store, queue string, act sluice.Act) error {
	act.ID = sluice.ID{}
	errs, err := store.Admit(ctx, []string{queue}, act)
	if err != nil {
		return err
	}
	return errs[0]
}

// about names the schedule in an error.
func about(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("schedule %.80q: %w", name, err)
}
