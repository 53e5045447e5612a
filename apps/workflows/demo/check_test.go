package demo

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/workflows/records"
)

// The check must find faults, so it gets made-up audits that contain some.
func TestTheReplayFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		noisy, quiet           int // the numbers of claims, in this order
		over, passed           int
		quietEndsBeforeTheNext bool
	}{
		"a FREE workspace within its capacity":   {noisy: 1, quiet: 2, over: 0, passed: 1, quietEndsBeforeTheNext: true},
		"a FREE workspace with two at a time":    {noisy: 1, quiet: 2, over: 1, passed: 1},
		"one that is passed more than it may be": {noisy: 30, quiet: 1, over: 10, passed: 30},
	} {
		s := &show{capacity: map[string]int{"FREE": 1, "ENTERPRISE": 20}, quiet: []records.Workspace{{ID: "q", Plan: "FREE"}}}
		r := s.newReplay()
		at := begun
		move := func(workspace string, id sluice.ID, event sluice.Event, from, to sluice.State) {
			at = at.Add(time.Second)
			r.move(r.workspaces[workspace], sluice.AuditEntry{At: at, JobID: id, Event: event, From: from, To: to})
		}
		enqueue := func(workspace string, n int) []sluice.ID {
			ids := make([]sluice.ID, n)
			for i := range ids {
				ids[i] = sluice.NewID()
				move(workspace, ids[i], sluice.EventEnqueue, "", sluice.StateQueued)
			}
			return ids
		}
		quiet, noisy := enqueue("q", c.quiet), enqueue(noisyName, c.noisy)
		for _, id := range noisy {
			move(noisyName, id, sluice.EventClaim, sluice.StateQueued, sluice.StateClaimed)
		}
		for _, id := range quiet {
			move("q", id, sluice.EventClaim, sluice.StateQueued, sluice.StateClaimed)
			if c.quietEndsBeforeTheNext {
				move("q", id, sluice.EventComplete, sluice.StateClaimed, sluice.StateCompleted)
			}
		}
		if over := r.groups["FREE"].over + r.groups[noisyName].over; over != c.over || r.groups["FREE"].passed != c.passed {
			t.Errorf("%s: found %d claims over the capacity and %d passings, want %d and %d", name, over, r.groups["FREE"].passed, c.over, c.passed)
		}
	}
}
