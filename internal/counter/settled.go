package counter

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/stat"
)

// Settled is the move that a settlement made.
type Settled struct {
	Event sluice.Event
	// Queue and Tenant are those of the job; empty: not known, or of none.
	Queue, Tenant string
	// Failed says that an attempt failed with it.
	Failed bool
	// Run is how long the job was held, Total how long ago it was due, for what ends it. Unknown: not known, or of no meaning.
	Run, Total time.Duration
}

// SettledBy is the move that a settlement made at an instant.
func SettledBy(s *sluice.Settlement, now time.Time) Settled {
	move := Settled{
		Event: s.Event, Run: stat.Unknown, Total: stat.Unknown,
		Failed: s.Event == sluice.EventRetry || s.Event == sluice.EventBury && !s.Poison,
	}
	if s.InTx && s.Returned { // what is settled here is what would be if that had come to nothing
		move.Event, move.Failed = sluice.EventComplete, false
	}
	c := s.Claim
	if c == nil {
		return move
	}
	move.Queue, move.Tenant = c.Queue, c.Tenant
	if move.Event == sluice.EventDispatch || move.Event == sluice.EventDoubt || move.Event == sluice.EventRecover {
		return move
	}
	held := heldFor(c, now)
	early := max(c.DueAt.Sub(c.ClaimedAt), 0) // it was claimed before it was due
	move.Run = max(held-early, 0)
	if sluice.MoveOf(move.Event).To.Finished() {
		move.Total = max(c.ClaimedAt.Sub(c.DueAt)+held, 0)
	}
	return move
}

// heldFor is how long a claim was held: by this process's clock alone, if it was this process's claim.
func heldFor(c *sluice.Claim, now time.Time) time.Duration {
	if !c.ReceivedAt.IsZero() {
		return now.Sub(c.ReceivedAt)
	}
	return max(now.Sub(c.ClaimedAt), 0)
}
