package sqlite

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// shortWait is the shortest wait for the write lock that counts. SQLite's first pause is that
	// long.
	shortWait = time.Millisecond
	// shareOver is the shortest time over which the share of waiting is reported.
	shareOver = 10 * time.Second
)

// waits counts how often and how long the writer waited for a lock of another process or
// connection.
type waits struct {
	times atomic.Int64
	nanos atomic.Int64

	mu    sync.Mutex
	from  time.Time     // start of the time for the next share
	until time.Duration // total wait until then
	last  float64
	known bool
}

// took records how long the writer waited until it got the lock or gave up.
func (w *waits) took(d time.Duration) {
	if d < shortWait {
		return
	}
	w.times.Add(1)
	w.nanos.Add(int64(d))
}

func (w *waits) waited() time.Duration { return time.Duration(w.nanos.Load()) }

// share returns the share of the time since the last call that the writer waited. Known is false at
// first.
func (w *waits) share(now time.Time) (share float64, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	passed := now.Sub(w.from)
	if passed < shareOver {
		return w.last, w.known
	}
	waited := w.waited()
	w.last, w.known = float64(waited-w.until)/float64(passed), true
	w.from, w.until = now, waited
	return w.last, true
}
