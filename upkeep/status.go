package upkeep

import (
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// standing is the state of a running upkeep that others may read.
type standing struct {
	mu     sync.Mutex
	beaten time.Time
	leads  []string
	// unfollowed lists the engines whose runs no process follows.
	unfollowed []sluice.Condition
}

func (s *standing) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beaten = time.Now()
}

func (s *standing) lead(tasks []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads = slices.Clone(tasks)
}

// unfollow stores the engines whose runs no process follows, and reports whether they are new. A lasting
// condition keeps its start time.
func (s *standing) unfollow(now []sluice.Condition) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = len(now) != len(s.unfollowed)
	for i, c := range now {
		at := slices.IndexFunc(s.unfollowed, func(was sluice.Condition) bool { return was.Text == c.Text })
		if at < 0 {
			news = true
			continue
		}
		now[i].Since = s.unfollowed[at].Since
	}
	s.unfollowed = now
	return news
}

// Status returns the state of the upkeep. Status does not read the store, and any goroutine may call it at any
// time.
func (u *Upkeep) Status() sluice.HolderStatus {
	s := &u.standing
	conditions := u.ownConditions()
	s.mu.Lock()
	defer s.mu.Unlock()
	return sluice.HolderStatus{
		Holder: u.holder.ID, Beaten: s.beaten, Conditions: conditions,
		Leads: slices.Contains(s.leads, sluice.TaskUpkeep), Tasks: slices.Clone(s.leads),
	}
}
