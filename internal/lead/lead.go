// Package lead decides who leads a task, for stores that decide in Go.
package lead

import (
	"time"

	"github.com/sluice-queue/sluice"
)

// farAhead is how many leases a lease may end ahead. One that ends later was written before the clock was set back.
const farAhead = 3

// Free reports whether another may take a lead: its lease has ended, or ends so late that the clock was set back since.
func Free(l sluice.Lead, now time.Time, lease time.Duration) bool {
	return !l.Until.After(now) || l.Until.After(now.Add(farAhead*lease))
}

// Take gives what becomes of a task's lead, if a holder asks for it: whether it leads, and whether that is to be stored. A
// lease is renewed once a third of it has passed.
func Take(task string, has sluice.Lead, holder string, now time.Time, lease time.Duration) (next sluice.Lead, leads, changed bool) {
	switch {
	case has.Holder == holder && has.Until.After(now.Add(lease*2/3)) && !has.Until.After(now.Add(lease)):
		return has, true, false
	case has.Holder == holder:
		has.Until = now.Add(lease)
		return has, true, true
	case has.Holder == "" || Free(has, now, lease):
		return sluice.Lead{Task: task, Holder: holder, Since: now, Until: now.Add(lease)}, true, true
	}
	return has, false, false
}
