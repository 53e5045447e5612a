package upkeep

import (
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// standing is what others may ask an upkeep while it runs.
type standing struct {
	mu     sync.Mutex
	beaten time.Time
	leads  bool
}

func (s *standing) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beaten = time.Now()
}

func (s *standing) lead(leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads = leads
}

// Status tells how the upkeep does. It may be asked at any time, and does not read the store.
func (u *Upkeep) Status() sluice.HolderStatus {
	u.standing.mu.Lock()
	defer u.standing.mu.Unlock()
	return sluice.HolderStatus{Holder: u.holder.ID, Beaten: u.standing.beaten, Leads: u.standing.leads, Trouble: u.trouble()}
}
