package postgres

import "time"

// pace limits each kind of event to one per hearInterval on average, and hearAtOnce in a row. Its values are the
// times until which each kind has used its turns.
type pace[K comparable] map[K]time.Time

// wait returns how long an event must still wait. 0: it happens now, and counts.
func (p pace[K]) wait(what K, now time.Time) time.Duration {
	wait := p.left(what, now)
	if wait == 0 {
		p[what] = p.used(what, now).Add(hearInterval)
	}
	return wait
}

// left returns how long an event must still wait, and counts nothing.
func (p pace[K]) left(what K, now time.Time) time.Duration {
	return max(p.used(what, now).Sub(now)-(hearAtOnce-1)*hearInterval, 0)
}

// used returns until when an event has used its turns.
func (p pace[K]) used(what K, now time.Time) time.Time {
	if until, there := p[what]; there && until.After(now) {
		return until
	}
	return now
}

// forget drops the kinds that have all their turns again.
func (p pace[K]) forget(now time.Time) {
	for what, until := range p {
		if !until.After(now) {
			delete(p, what)
		}
	}
}
