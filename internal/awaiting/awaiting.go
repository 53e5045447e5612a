// Package awaiting holds the jobs whose ends some process waits for. A store signals the ends of these jobs alone.
//
// Begin with [Set].
//
// Read next: package await, which waits.
package awaiting

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
)

// Time is how long a job stays in a set. Whoever waits for longer adds it again.
const Time = time.Minute

// most is how many jobs a set keeps. Any program that can signal can add some.
const most = 100_000

// Set is a set of awaited jobs. The zero value is empty, and costs whoever asks it nothing. It is safe for concurrent use.
type Set struct {
	size  atomic.Int64
	mu    sync.Mutex
	until map[sluice.ID]time.Time
}

// Add adds jobs for the next Time. A full set forgets jobs that nobody has added again, and then takes no others.
func (s *Set) Add(ids []sluice.ID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = make(map[sluice.ID]time.Time)
	}
	if len(s.until)+len(ids) > most {
		s.forget(now)
	}
	for _, id := range ids {
		if _, known := s.until[id]; known || len(s.until) < most {
			s.until[id] = now.Add(Time)
		}
	}
	s.size.Store(int64(len(s.until)))
}

func (s *Set) forget(now time.Time) {
	for id, until := range s.until {
		if until.Before(now) {
			delete(s.until, id)
		}
	}
}

// Any reports whether somebody may wait for a job.
func (s *Set) Any() bool { return s.size.Load() > 0 }

// Take removes a job that has ended, and reports whether somebody waits for it.
func (s *Set) Take(id sluice.ID) bool {
	if !s.Any() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, awaited := s.until[id]
	delete(s.until, id)
	s.size.Store(int64(len(s.until)))
	return awaited
}
