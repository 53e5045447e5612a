package observe

import (
	"iter"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/counter"
	"github.com/sluice-queue/sluice/stat"
)

// Move is one move of the state machine made by a call, or several equal ones.
type Move struct {
	Event sluice.Event
	// Count is how many jobs made the move.
	Count int
	// Queue and Tenant belong to the job; empty: unknown, or none.
	Queue, Tenant string
	// Job is zero if the call does not identify the job.
	Job sluice.ID
	// Reason is the reason given by the code that settled the job.
	Reason string
	// Attempts is how many attempts of the job have failed, including this one.
	Attempts int
	// Failed is true if an attempt failed with this move.
	Failed bool
	// Wait is how long a job waited since its due time, for a claim. Run is how long the claim lasted, for a
	// move that ends a claim. Total is the time since the due time, for a move that ends the job. Negative:
	// unknown, or meaningless for the move.
	Wait, Run, Total time.Duration
}

// unknown is a time that a move does not have.
const unknown = stat.Unknown

// Moves iterates over the moves that a call has made. Call it at the end of the call. Moves allocates no memory
// per move.
func (c *Call) Moves() iter.Seq[Move] {
	return func(yield func(Move) bool) {
		switch {
		case c.Inserts != nil:
			c.enqueued(yield)
		case c.Name == "claim" && c.Kind == KindStore:
			c.claimed(yield)
		case c.Settlements != nil:
			c.settled(yield)
		case c.recovered != sluice.Recovered{}:
			_ = yield(c.several(sluice.EventRecover, c.recovered.Requeued, "lease ran out")) &&
				yield(c.several(sluice.EventBury, c.recovered.Buried, "recoveries spent"))
		case c.event != "":
			yield(c.several(c.event, c.succeeded(), c.reason))
		}
	}
}

func (c *Call) several(event sluice.Event, count int, reason string) Move {
	return Move{Event: event, Count: count, Queue: c.Queue, Reason: reason, Wait: unknown, Run: unknown, Total: unknown}
}

// succeeded counts the jobs that a call has moved.
func (c *Call) succeeded() int {
	if c.Err != nil {
		return 0
	}
	count := c.count
	for _, err := range c.Errs {
		if err == nil {
			count++
		}
	}
	return count
}

func (c *Call) enqueued(yield func(Move) bool) {
	for i, receipt := range c.Receipts {
		in := &c.Inserts[i]
		if receipt.Duplicate || receipt.ID.IsZero() {
			continue
		}
		if !yield(Move{Event: sluice.EventEnqueue, Count: 1, Queue: in.Queue, Tenant: in.Tenant, Job: receipt.ID, Wait: unknown, Run: unknown, Total: unknown}) {
			return
		}
	}
}

func (c *Call) claimed(yield func(Move) bool) {
	for _, claim := range c.Claims {
		move := Move{
			Event: sluice.EventClaim, Count: 1, Queue: claim.Queue, Tenant: claim.Tenant, Job: claim.ID, Attempts: claim.Attempts,
			Wait: max(claim.ClaimedAt.Sub(claim.DueAt), 0), Run: unknown, Total: unknown,
		}
		if !yield(move) {
			return
		}
	}
}

func (c *Call) settled(yield func(Move) bool) {
	if c.Err != nil {
		return
	}
	now := c.Began.Add(c.Took)
	for i := range c.Settlements {
		if c.Errs[i] == nil && !yield(settledMove(&c.Settlements[i], now)) {
			return
		}
	}
}

// settledMove returns the move that a settlement made at an instant.
func settledMove(s *sluice.Settlement, now time.Time) Move {
	of := counter.SettledBy(s, now)
	move := Move{
		Event: of.Event, Count: 1, Queue: of.Queue, Tenant: of.Tenant, Job: s.ID, Reason: s.Reason, Failed: of.Failed,
		Wait: unknown, Run: of.Run, Total: of.Total,
	}
	if s.InTx && s.Returned {
		move.Reason = ""
	}
	if s.Claim != nil {
		move.Attempts = s.Claim.Attempts
		if move.Failed {
			move.Attempts++
		}
	}
	return move
}

// MoveEnds reports whether a job is finished after an event.
func MoveEnds(event sluice.Event) bool { return sluice.MoveOf(event).To.Finished() }
