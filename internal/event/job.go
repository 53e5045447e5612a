package event

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// Of is the event of a move that ends a holder's claim, or what it became.
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

// Wait is an argument for a wait that may be none.
func Wait(d time.Duration) any {
	if d <= 0 {
		return nil
	}
	return d
}

// Count is an argument for a number that may be none.
func Count(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

// Some is an argument for a list that may be empty.
func Some(list []string) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// Labels is an argument for a job's labels, which may be none.
func Labels(labels map[string]string) any {
	pairs := make([]string, 0, len(labels))
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, name+"="+labels[name])
	}
	return strings.Join(pairs, ",")
}

// NoticePause tells that a queue was paused or resumed, if it was since the last look, and gives whether it is paused.
func (l *Log) NoticePause(q sluice.Queue, was bool) (paused bool) {
	if q.Settings.Paused == was {
		return was
	}
	told := QueueResumed
	if q.Settings.Paused {
		told = QueuePaused
	}
	l.Tell(told, q.Name, "by", q.ChangedBy, "reason", q.Reason)
	return q.Settings.Paused
}
