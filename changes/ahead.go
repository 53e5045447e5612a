package changes

import (
	"time"

	"github.com/sluice-queue/sluice"
)

// maxAhead is the most versions that Ahead looks for. With the most scheduled changes, it is a week.
const maxAhead = 1000

// Ahead returns how upkeep will change the settings of a queue until an instant: the queue after each of these moments, in order.
// Now of each is its moment. Ahead supposes that nobody else changes the queue, and changes nothing itself.
//
// If plain SQL stored another text in place of the scheduled changes, the error is an [Error].
func Ahead(queue sluice.Queue, until time.Time) ([]sluice.Queue, error) {
	q, err := read(queue)
	if err != nil {
		return nil, err
	}
	var out []sluice.Queue
	for range maxAhead {
		next := q.next()
		if next.IsZero() || next.After(until) {
			break
		}
		before := q.Settings
		q.Now = next
		for range 2 * maxScheduled {
			if why, _ := q.apply(); why == "" { // upkeep reports a change that it cannot apply
				break
			}
		}
		if q.Settings != before {
			out = append(out, q.Queue)
		}
	}
	return out, nil
}

// next returns the first moment from Now on at which a scheduled change changes something. Zero: there is none.
func (q *scheduledQueue) next() (first time.Time) {
	for _, p := range q.scheduled {
		at, err := p.Next(q.Now)
		if err != nil || at.IsZero() {
			continue
		}
		if at.Before(q.Now) { // upkeep is late
			at = q.Now
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
