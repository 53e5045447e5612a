package cli

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/explain"
)

func TestWhyMarksAnEstimate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 16, 0, 0, 0, time.UTC)
	for want, why := range map[string]explain.Explanation{
		"when it starts is not known: it depends on the reasons that are closed": {},
		"it should start now":                               {Start: now},
		"it should start at 2026-12-01T16:03:00Z, in 3m00s": {Start: now.Add(3 * time.Minute)},
		"it may start at about 2026-12-01T16:03:00Z, in 3m00s, by an estimate: 4 jobs must end first": {Start: now.Add(3 * time.Minute), Estimate: "4 jobs must end first"},
	} {
		why.Job.State, why.Now = sluice.StateQueued, now
		if got := startSentence(why); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
