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
