// Package lead decides which process leads a task, for the stores that decide in Go: memory and
// SQLite. The store on PostgreSQL decides the same in SQL.
//
// Begin with [Take], which a store calls for each task of Elect. [Free] reports whether
// another process may take over.
//
// Read next: presence.Leader, and lead.go of package sqlite.
package lead

import (
	"time"

	"github.com/sluice-queue/sluice/presence"
)

// farAhead is how many leases ahead a lease may end. A lease that ends later was written before the
// clock was set back.
const farAhead = 3

// Free reports whether another process may lead: the lease has ended, or ends so late that the
// clock was set back since.
func Free(l presence.Leader, now time.Time, lease time.Duration) bool {
	return !l.Until.After(now) || l.Until.After(now.Add(farAhead*lease))
}

// Take returns a task's lead after a holder has asked for it, whether the holder leads, and whether
// to store the change. Once a third of a lease has passed, Take renews it.
func Take(task string, has presence.Leader, holder string, now time.Time, lease time.Duration) (next presence.Leader, leads, changed bool) {
	switch {
	case has.Holder == holder && has.Until.After(now.Add(lease*2/3)) && !has.Until.After(now.Add(lease)):
		return has, true, false
	case has.Holder == holder:
		has.Until = now.Add(lease)
		return has, true, true
	case has.Holder == "" || Free(has, now, lease):
		return presence.Leader{Task: task, Holder: holder, Since: now, Until: now.Add(lease)}, true, true
	}
	return has, false, false
}
