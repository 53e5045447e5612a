package upkeep

import (
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// standing is what others may ask an upkeep while it runs.
type standing struct {
	mu     sync.Mutex
	beaten time.Time
	leads  []string
	// unfollowed are the engines whose runs nobody follows.
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

// unfollow notes at which engines nobody follows runs, and reports whether that is news. What goes on keeps its beginning.
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

// Status tells how the upkeep does. It may be asked at any time, and does not read the store.
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
