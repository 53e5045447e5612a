package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/schedule"
)

// TestAnActThatIsSentAgainBesideItselfSucceeds sends an act again while the first call of it still waits for a row, as after
// a lost answer. Both calls must say that the act was done, and the audit must name it once.
func TestAnActThatIsSentAgainBesideItselfSucceeds(t *testing.T) {
	const waiting, ended = "select from sluice.live where id = $1 for update", "select from sluice.done where id = $1 for update"
	for name, c := range map[string]struct {
		lock string
		do   func(ctx context.Context, s *shop, job sluice.Job, act sluice.Act) error
	}{
		"cancel": {waiting, func(ctx context.Context, s *shop, job sluice.Job, act sluice.Act) error {
			return oneError(s.store.Cancel(ctx, []sluice.ID{job.ID}, act))
		}},
		"hold": {waiting, func(ctx context.Context, s *shop, job sluice.Job, act sluice.Act) error {
			return oneError(s.store.Hold(ctx, []sluice.ID{job.ID}, act))
		}},
		"reschedule": {waiting, func(ctx context.Context, s *shop, job sluice.Job, act sluice.Act) error {
			return oneError(s.store.Reschedule(ctx, []sluice.ID{job.ID}, job.DueAt.Add(time.Hour), act))
		}},
		"edit": {waiting, func(ctx context.Context, s *shop, job sluice.Job, act sluice.Act) error {
			return s.store.EditJob(ctx, edit.Edit{Change: edit.Change{Priority: 2}, JobID: job.ID, Version: edit.VersionOf(job)}, act)
		}},
		"requeue": {ended, func(ctx context.Context, s *shop, job sluice.Job, act sluice.Act) error {
			return oneError(s.store.Requeue(ctx, []sluice.ID{job.ID}, act))
		}},
		"hold by function":    {waiting, byFunction("hold", "held")},
		"requeue by function": {ended, byFunction("requeue", "queued")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			id := s.add(s.client, sluice.EnqueueOptions{}).ID
			if c.lock == ended {
				if err := s.client.Cancel(t.Context(), []sluice.ID{id}, sluice.Act{By: "test"}); err != nil {
					t.Fatal(err)
				}
			}
			job, err := s.store.Job(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			act := sluice.Act{ID: sluice.NewID(), By: "test", Reason: "r"}
			s.twiceBeside(c.lock, [16]byte(id), func(ctx context.Context) error { return c.do(ctx, s, job, act) })
			told := 0
			if err := s.store.Pool().QueryRow(t.Context(), "select count(*) from sluice.audit where act_id = $1", [16]byte(act.ID)).Scan(&told); err != nil || told != 1 {
				t.Errorf("the audit names the act %d times, want once: %v", told, err)
			}
		})
	}
}

func TestADeletionThatIsSentAgainBesideItselfSucceeds(t *testing.T) {
	s := newShop(t)
	if _, err := s.store.SaveSchedule(t.Context(), schedule.Schedule{Name: "s", Definition: schedule.Definition{Queue: "payments", Every: time.Hour}}, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	act := sluice.Act{ID: sluice.NewID(), By: "test"}
	s.twiceBeside("select from sluice.schedule where name = $1 for update", "s", func(ctx context.Context) error {
		return s.store.DeleteSchedule(ctx, "s", act)
	})
}

// TestAKeyOfALimitThatIsClosedTwiceBesideItselfIsAuditedOnce does the same for an act that may be done many times, each as
// an act of its own.
func TestAKeyOfALimitThatIsClosedTwiceBesideItselfIsAuditedOnce(t *testing.T) {
	s := newShop(t)
	first, act := sluice.Act{By: "test", Reason: "r"}, sluice.Act{ID: sluice.NewID(), By: "test", Reason: "r"}
	_, err := s.store.SaveLimit(t.Context(), limit.Limit{Name: "bank", Concurrency: 5, PerKey: true}, first)
	if err := errors.Join(err, s.store.CloseKey(t.Context(), "bank", "k", time.Now().Add(time.Hour), first)); err != nil {
		t.Fatal(err)
	}
	s.twiceBeside("select from sluice.limit_key where name = $1 for update", "bank", func(ctx context.Context) error {
		return s.store.CloseKey(ctx, "bank", "k", time.Time{}, act)
	})
	told := 0
	if err := s.store.Pool().QueryRow(t.Context(), "select count(*) from sluice.audit where act_id = $1", [16]byte(act.ID)).Scan(&told); err != nil || told != 1 {
		t.Errorf("the audit names the act %d times, want once: %v", told, err)
	}
}

// twiceBeside locks a row, runs do twice at the same time, and unlocks the row when both wait.
func (s *shop) twiceBeside(lock string, row any, do func(ctx context.Context) error) {
	s.Helper()
	if _, err := s.tx.Exec(s.Context(), lock, row); err != nil {
		s.Fatal(err)
	}
	done := make(chan error, 2)
	for n := 1; n <= 2; n++ {
		go func() { done <- do(s.Context()) }()
		s.blocked(n)
	}
	s.commit()
	for range 2 {
		if err := <-done; err != nil {
			s.Errorf("a call that was sent twice: %v", err)
		}
	}
}

// blocked returns when n connections wait for a lock of any kind.
func (s *shop) blocked(n int) {
	s.Helper()
	for got := -1; got != n; {
		err := s.store.Pool().QueryRow(s.Context(), "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").Scan(&got)
		if err != nil {
			s.Fatal(err)
		}
	}
}

func oneError(errs []error, err error) error { return errors.Join(append(errs, err)...) }

func byFunction(function, want string) func(ctx context.Context, s *shop, job sluice.Job, act sluice.Act) error {
	return func(ctx context.Context, s *shop, job sluice.Job, act sluice.Act) error {
		var state string
		err := s.store.Pool().QueryRow(ctx, "select state from sluice."+function+"(array[$1::uuid], $2, act_id => $3::uuid)",
			[16]byte(job.ID), act.Reason, [16]byte(act.ID)).Scan(&state)
		if err == nil && state != want {
			err = errors.New(state)
		}
		return err
	}
}
