package stat

import (
	"slices"
	"time"

	"github.com/sluice-queue/sluice/presence"
)

// NotCounted is shown in place of a figure that the statistics cannot give, because nobody counted.
const NotCounted = "not counted"

// Known reports whether statistics tell of a queue, so that a figure of 0 means that nothing happened. They do where
// something was counted lately, or processes that are alive serve the queue and count. They do not where one of these does
// not count: then a part is missing, or all. Now is by the store's clock.
func Known(queue string, counted bool, holders []presence.Holder, now time.Time) bool {
	for _, h := range holders {
		if now.Sub(h.Seen) > presence.Silence || !slices.Contains(h.Queues, queue) {
			continue
		}
		if !h.Counts {
			return false
		}
		counted = true
	}
	return counted
}
