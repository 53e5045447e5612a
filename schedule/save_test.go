package schedule_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schedule"
)

// TestUndoPassesOverDeclarationsThatChangedNothing overrides a schedule, and then deploys a program with another declaration.
func TestUndoPassesOverDeclarationsThatChangedNothing(t *testing.T) {
	t.Parallel()
	c := newClock()
	for _, every := range []time.Duration{time.Hour, 3 * time.Hour} {
		declared := []schedule.Schedule{{Name: "nightly", Definition: schedule.Definition{Queue: "q", Every: every}}}
		if _, err := schedule.Ensure(t.Context(), c, declared, act); err != nil {
			t.Fatal(err)
		}
		if every == time.Hour {
			c.set(t, "nightly", schedule.Definition{Every: 7 * time.Hour})
		}
	}
	for _, want := range []time.Duration{time.Hour, 7 * time.Hour} { // the second Undo undoes the first
		undone, err := schedule.Undo(t.Context(), c, "nightly", sluice.Act{By: "ada"})
		if err != nil || undone.Every != want || undone.Declared.Every != 3*time.Hour {
			t.Errorf("undone: every %s, declared %+v, %v; want every %s, and the declaration of the last deploy", undone.Every, undone.Declared, err, want)
		}
	}
}

// TestADueFireDoesNotComeBeforeANewStart sets the start of a schedule whose fire is due, because no upkeep has run.
func TestADueFireDoesNotComeBeforeANewStart(t *testing.T) {
	t.Parallel()
	c := newClock()
	c.set(t, "hourly", schedule.Definition{Every: time.Hour})
	c.now = start.Add(90 * time.Minute)
	begin := start.Add(48 * time.Hour)
	if s := c.set(t, "hourly", schedule.Definition{Every: time.Hour, Start: begin}); !s.NextAt.Equal(begin) {
		t.Errorf("the next fire is at %s, want %s", s.NextAt, begin)
	}
	if fired := c.fire(t); fired.Jobs != 0 || fired.Schedules != 0 {
		t.Errorf("fired %+v before the start", fired)
	}
}
