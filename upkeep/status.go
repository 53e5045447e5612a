package upkeep

import (
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/presence"
)

// standing is the state of a running upkeep that others may read.
type standing struct {
	mu     sync.Mutex
	beaten time.Time
	leads  []string
	// unfollowed lists the engines whose runs no process follows.
	unfollowed []presence.Condition
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
func (s *standing) unfollow(now []presence.Condition) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = len(now) != len(s.unfollowed)
	for i, c := range now {
		at := slices.IndexFunc(s.unfollowed, func(was presence.Condition) bool { return was.Text == c.Text })
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
func (u *Upkeep) Status() presence.Status {
	s := &u.standing
	conditions := u.ownConditions()
	s.mu.Lock()
	defer s.mu.Unlock()
	return presence.Status{
		Holder: u.holder.ID, Heartbeat: s.beaten, Conditions: conditions,
		Leads: slices.Contains(s.leads, presence.TaskUpkeep), Tasks: slices.Clone(s.leads),
	}
}
