package flow

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
)

// LimitKey returns the name under which stores keep the flow of a limit: its tokens, permits and starts. No queue has such a
// name.
func LimitKey(limit string) string { return "@" + limit }

// Figures returns the figures of a limit as those of a queue. A limit that is per key or by cost has
// none for all its jobs together: see [KeyBudget].
func Figures(l limit.Limit) sluice.Settings {
	if l.PerKey || l.ByCost {
		return sluice.Settings{}
	}
	return sluice.Settings{Rate: l.Rate, Burst: l.Burst, Concurrency: l.Concurrency}
}

// Least returns the smaller of two rooms. The larger one says nothing about when there will be more.
func (r Room) Least(other Room) Room {
	switch {
	case r.Jobs < other.Jobs:
		return r
	case other.Jobs < r.Jobs:
		return other
	}
	return Room{Jobs: r.Jobs, Wait: max(r.Wait, other.Wait), Full: r.Full || other.Full}
}

// NamedRoom is RoomWithin of a named limit. A closed limit has no room; without an end, it looks like one that waits for a job
// to end.
func NamedRoom(most int, l limit.Limit, b Bucket, w *Window, now time.Time, inFlight int, ahead time.Duration) Room {
	if l.ClosedAt(now) {
		return Room{Wait: max(l.ClosedUntil.Sub(now), 0), Full: l.ClosedUntil.IsZero()}
	}
	return RoomWithin(most, Figures(l), b, w, now, inFlight, ahead)
}
