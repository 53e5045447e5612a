package sqlite

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// shortWait is below what a wait for the write lock is not counted. SQLite's own first pause is that long.
	shortWait = time.Millisecond
	// shareOver is the least time over which the share of waiting is told.
	shareOver = 10 * time.Second
)

// waits counts how often, and how long, the writer waited for the lock that another process or connection held.
type waits struct {
	times atomic.Int64
	nanos atomic.Int64

	mu    sync.Mutex
	from  time.Time     // since when the next share counts
	until time.Duration // what was waited by then
	last  float64
	known bool
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

// share gives which part of the time since the last look was waited. Right after the beginning it is not known.
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
