package sluice_test

import (
	"testing"

	"github.com/sluice-queue/sluice"
)

func TestEveryStateCanBeReachedAndEveryUnfinishedOneLeft(t *testing.T) {
	t.Parallel()
	reached, left := map[sluice.State]bool{}, map[sluice.State]bool{}
	for _, m := range sluice.Moves() {
		reached[m.To] = true
		for _, from := range m.From {
			left[from] = true
		}
	}
	for _, s := range sluice.States() {
		if !reached[s] {
			t.Errorf("nothing leads to %s", s)
		}
		if !left[s] && s != sluice.StateCompleted {
			t.Errorf("nothing leads out of %s", s)
		}
	}
	if left[sluice.StateCompleted] {
		t.Error("a completed job must stay completed")
	}
}

func TestEventsLeadToOnePlaceEach(t *testing.T) {
	t.Parallel()
	seen := map[sluice.Event]bool{}
	for _, m := range sluice.Moves() {
		if seen[m.Event] {
			t.Errorf("%s stands twice in the table of moves", m.Event)
		}
		seen[m.Event] = true
		if got := sluice.MoveOf(m.Event); got.To != m.To {
			t.Errorf("MoveOf(%s) leads to %s", m.Event, got.To)
		}
		for _, s := range sluice.States() {
			want := false
			for _, from := range m.From {
				want = want || from == s
			}
			if m.Allows(s) != want {
				t.Errorf("%s from %s: Allows says %v", m.Event, s, !want)
			}
		}
	}
	if unknown := sluice.MoveOf("explode"); unknown.Allows(sluice.StateQueued) {
		t.Error("an unknown event moves a job")
	}
}

func TestMovesCannotBeChangedByCallers(t *testing.T) {
	t.Parallel()
	moves := sluice.Moves()
	moves[1].To = sluice.StateDead
	if sluice.Moves()[1].To == sluice.StateDead {
		t.Error("the table of moves can be changed from outside")
	}
}
