package event

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// Of returns the event for the move that ends a holder's claim.
func Of(move sluice.Event) *Event {
	switch move {
	case sluice.EventComplete:
		return JobCompleted
	case sluice.EventRetry:
		return JobFailed
	case sluice.EventBury:
		return JobBuried
	case sluice.EventDoubt:
		return JobDoubted
	case sluice.EventDispatch:
		return JobDispatched
	}
	return JobReleased
}

// Wait returns an argument for a wait, or an empty one if there is none.
func Wait(d time.Duration) any {
	if d <= 0 {
		return nil
	}
	return d
}

// Count returns an argument for a number, or an empty one for 0.
func Count(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

// Some returns an argument for a list, or an empty one for an empty list.
func Some(list []string) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// Labels returns an argument for a job's labels, or an empty one if there are none.
func Labels(labels map[string]string) any {
	pairs := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, name+"="+labels[name])
	}
	return strings.Join(pairs, ",")
}

// EmitPause logs that a queue was paused or resumed since the last call, and returns whether it
// is paused.
func (l *Log) EmitPause(q sluice.Queue, was bool) (paused bool) {
	if q.Settings.Paused == was {
		return was
	}
	told := QueueResumed
	if q.Settings.Paused {
		told = QueuePaused
	}
	l.Emit(told, q.Name, "by", q.ChangedBy, "reason", q.Reason)
	return q.Settings.Paused
}
