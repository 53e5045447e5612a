package metric

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/observe"
)

// queue holds the metrics of one queue, looked up once.
type queue struct {
	name    string
	vectors *prometheus.CounterVec // of moves

	wait, run, total, attempts, batch, cycle                                prometheus.Observer
	limitedRate, limitedInFlight, duplicates, renewals, lost, startFailures prometheus.Counter

	plain [len(events)]lazily // moves without a reason, by event
	other sync.Map            // by event and reason: prometheus.Counter
}

// lazily is a counter that is made when first needed, because most moves never happen in a queue. Moves that
// happen in most queues are made at the start, so that rates include their first.
type lazily struct {
	once    sync.Once
	counter prometheus.Counter
}

// events are counted without a lookup.
var events = [...]sluice.Event{
	sluice.EventClaim, sluice.EventComplete, sluice.EventEnqueue, sluice.EventRetry, sluice.EventDispatch, sluice.EventBury, sluice.EventRelease,
	sluice.EventRecover, sluice.EventCancel, sluice.EventRequeue, sluice.EventDoubt,
}

func (v *vectors) queue(name string) *queue {
	q := &queue{
		name: name, vectors: v.moves,
		wait: v.wait.WithLabelValues(name), run: v.run.WithLabelValues(name), total: v.total.WithLabelValues(name),
		attempts: v.attempts.WithLabelValues(name), batch: v.batch.WithLabelValues(name), cycle: v.cycle.WithLabelValues(name),
		limitedRate: v.limited.WithLabelValues(name, "rate"), limitedInFlight: v.limited.WithLabelValues(name, "in_flight"),
		duplicates: v.duplicates.WithLabelValues(name), renewals: v.renewals.WithLabelValues(name), lost: v.lost.WithLabelValues(name),
		startFailures: v.startFailures.WithLabelValues(name),
	}
	if name == "" {
		return q // acts of people name jobs, not queues
	}
	for _, event := range []sluice.Event{sluice.EventEnqueue, sluice.EventClaim, sluice.EventComplete, sluice.EventRetry} {
		q.counter(event, "")
	}
	q.counter(sluice.EventBury, "attempts spent")
	q.counter(sluice.EventRecover, "lease ran out")
	return q
}

// moved counts a move.
func (q *queue) moved(m observe.Move) {
	q.counter(m.Event, m.Reason).Add(float64(m.Count))
	if m.Wait >= 0 {
		q.wait.Observe(m.Wait.Seconds())
	}
	if m.Run >= 0 {
		q.run.Observe(m.Run.Seconds())
	}
	if m.Total >= 0 {
		q.total.Observe(m.Total.Seconds())
		q.attempts.Observe(float64(m.Attempts))
	}
}

// counter returns the counter of an event and a reason.
func (q *queue) counter(event sluice.Event, reason string) prometheus.Counter {
	if reason == "" {
		for i := range events {
			if events[i] == event {
				at := &q.plain[i]
				at.once.Do(func() { at.counter = q.vectors.WithLabelValues(q.name, string(event), "") })
				return at.counter
			}
		}
	}
	key := eventReason{event, reasonOf(reason)}
	if known, found := q.other.Load(key); found {
		return known.(prometheus.Counter)
	}
	made := q.vectors.WithLabelValues(q.name, string(event), key.reason)
	q.other.Store(key, made)
	return made
}

type eventReason struct {
	event  sluice.Event
	reason string
}
