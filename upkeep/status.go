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
	// unfollowed says which runs nobody follows.
	unfollowed string
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

// unfollow notes which runs nobody follows, and reports whether that is news.
func (s *standing) unfollow(text string) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = s.unfollowed != text
	s.unfollowed = text
	return news
}

// Status tells how the upkeep does. It may be asked at any time, and does not read the store.
func (u *Upkeep) Status() sluice.HolderStatus {
	s := &u.standing
	trouble := u.trouble()
	s.mu.Lock()
	defer s.mu.Unlock()
	return sluice.HolderStatus{
		Holder: u.holder.ID, Beaten: s.beaten, Trouble: trouble,
		Leads: slices.Contains(s.leads, sluice.TaskUpkeep), Tasks: slices.Clone(s.leads),
	}
}
