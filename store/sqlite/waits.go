package sqlite

import (
	"sync/atomic"
	"time"
)

// shortWait is below what a wait for the write lock is not counted. SQLite's own first pause is that long.
const shortWait = time.Millisecond

// waits counts how often, and how long, the writer waited for the lock that another process or connection held.
type waits struct {
	times  atomic.Int64
	nanos  atomic.Int64
	opened time.Time
}

// took notes how long it took to get the lock, or to give up.
func (w *waits) took(d time.Duration) {
	if d < shortWait {
		return
	}
	w.times.Add(1)
	w.nanos.Add(int64(d))
}

func (w *waits) waited() time.Duration { return time.Duration(w.nanos.Load()) }
