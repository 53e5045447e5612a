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

// Stepped returns how far, at least, the store's clock was set forward between two readings of one
// process, or how far, at most, it was set back. Steps that another process has found do not count.
// 0: no step. A process counts steps back, too, for the others: after one, a later step forward looks
// too short to a process that has not read the clock in between.
func (r Reading) Stepped(next Reading) (forward, back time.Duration) {
	if r.StoreTime.IsZero() {
		return 0, 0
	}
	told := next.StoreTime.Sub(r.StoreTime) - (next.Ahead - r.Ahead)
	most := next.Answered.Sub(r.Asked)
	most += most/1000 + readingSlack
	least := next.Asked.Sub(r.Answered)
	least -= least/1000 + readingSlack
	if told < least {
		return 0, most - told
	}
	return max(0, told-most), 0
}
