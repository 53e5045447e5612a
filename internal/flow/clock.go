package flow

import "time"

// Reading is a process's reading of a store's clock, taken when the process last held the limits of
// a queue.
type Reading struct {
	// StoreTime is the store's time, at an instant between Asked and Answered by the process's steady
	// clock.
	StoreTime       time.Time
	Asked, Answered time.Time
	// Ahead is the sum of the forward steps of the store's clock, minus the backward ones, that all
	// processes have found.
	Ahead time.Duration
}

// readingSlack is how far two readings may differ without a step of a clock. To it comes a
// thousandth of the time between them.
const readingSlack = 10 * time.Millisecond

// SetForward returns how far, at least, the store's clock was set forward between two readings of
// one process. Steps that another process has found do not count. 0: no step.
func (r Reading) SetForward(next Reading) time.Duration {
	if r.StoreTime.IsZero() {
		return 0
	}
	passed := next.Answered.Sub(r.Asked)
	passed += passed/1000 + readingSlack
	return max(0, next.StoreTime.Sub(r.StoreTime)-passed-(next.Ahead-r.Ahead))
}
