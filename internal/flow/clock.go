package flow

import "time"

// Reading is what a process read of a store's clock when it last held the limits of a queue.
type Reading struct {
	// Says is what the store's clock said, between Asked and Answered by the steady clock of the process.
	Says            time.Time
	Asked, Answered time.Time
	// Ahead is by how much the store's clock was found to be set forward until then, less by how much back, by all processes
	// together.
	Ahead time.Duration
}

// readingSlack is what two readings may differ by where no clock was set, and a thousandth of the time between them.
const readingSlack = 10 * time.Millisecond

// SetForward is by how much the store's clock was set forward between two readings of one process at the least, as far as
// no other process has found it; 0: it was not.
func (r Reading) SetForward(next Reading) time.Duration {
	if r.Says.IsZero() {
		return 0
	}
	passed := next.Answered.Sub(r.Asked)
	passed += passed/1000 + readingSlack
	return max(0, next.Says.Sub(r.Says)-passed-(next.Ahead-r.Ahead))
}
