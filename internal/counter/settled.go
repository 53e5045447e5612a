package counter

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/stat"
)

// Settled is the move of a settlement.
type Settled struct {
	Event sluice.Event
	// Queue and Tenant are the job's. Empty: unknown, or the job has none.
	Queue, Tenant string
	// Failed means that an attempt failed with the move.
	Failed bool
	// Run is how long the job was held. Total is the time from its due time, for a move that ends
	// the job. Unknown: not known, or without meaning.
	Run, Total time.Duration
}

// SettledBy returns the move that a settlement makes at an instant.
func SettledBy(s *sluice.Settlement, now time.Time) Settled {
	move := Settled{
		Event: s.Event, Run: stat.Unknown, Total: stat.Unknown,
		Failed: s.Event == sluice.EventRetry || s.Event == sluice.EventBury && !s.Poison,
	}
	if s.InTx && s.Returned { // the job was completed in the handler's transaction; the settlement only counts if that was rolled back
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
	early := max(c.DueAt.Sub(c.ClaimedAt), 0) // time held before the job was due
	move.Run = max(held-early, 0)
	if sluice.MoveOf(move.Event).To.Finished() {
		move.Total = max(c.ClaimedAt.Sub(c.DueAt)+held, 0)
	}
	return move
}

// heldFor returns how long a claim was held. If the claim is this process's, only this process's
// clock counts.
func heldFor(c *sluice.Claim, now time.Time) time.Duration {
	if !c.ReceivedAt.IsZero() {
		return now.Sub(c.ReceivedAt)
	}
	return max(now.Sub(c.ClaimedAt), 0)
}
