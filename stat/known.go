package stat

import (
	"time"

	"github.com/sluice-queue/sluice/presence"
)

// NotCounted is the text in place of a figure that nobody counted.
const NotCounted = "not counted"

// Known reports whether a queue has statistics, so that a figure of 0 means that nothing happened. Something was
// counted lately, or living processes serve the queue and count.
//
// If one of these processes does not count, Known is false, because a part of the figures is missing. Now is by the
// store's clock.
func Known(queue string, counted bool, holders []presence.Holder, now time.Time) bool {
	return knownOf([]string{queue}, counted, holders, now)
}
