package flow_test

import (
	"testing"

	"github.com/sluice-queue/sluice/internal/flow"
)

// TestBehindIsBehindTheMarkHoweverFarTheTurnsAre goes beyond the turns of 2^33 jobs, where a fixed step is lost by
// rounding: a line that wakes would stand before the mark, and never be looked at.
func TestBehindIsBehindTheMarkHoweverFarTheTurnsAre(t *testing.T) {
	t.Parallel()
	for turn := 1.0; turn < 1<<53; turn *= 2 {
		if mark := (flow.Mark{Turn: turn, Tenant: "z"}); mark.Behind() <= mark.Turn {
			t.Fatalf("behind %g is %g", mark.Turn, mark.Behind())
		}
	}
}
