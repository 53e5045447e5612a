package upkeep

import (
	"errors"
	"sync"

	"github.com/sluice-queue/sluice"
)

// noted is a condition that is there or not. The zero value: it is not.
type noted struct {
	mu  sync.Mutex
	is  bool
	the sluice.Condition
}

// set notes a condition, and reports whether that is news. One that goes on keeps its beginning.
func (n *noted) set(c sluice.Condition) (news bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	news = !n.is || n.the.Kind != c.Kind || n.the.Text != c.Text
	if n.is && n.the.Kind == c.Kind {
		c.Since = n.the.Since
	}
	n.is, n.the = true, c
	return news
}

// clear notes that there is none.
func (n *noted) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.is = false
}

// addTo appends the condition if it is there.
func (n *noted) addTo(all []sluice.Condition) []sluice.Condition {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.is {
		all = append(all, n.the)
	}
	return all
}

// ownConditions are what keeps upkeep from following runs, or from doing it safely.
func (u *Upkeep) ownConditions() []sluice.Condition {
	u.standing.mu.Lock()
	own := append([]sluice.Condition(nil), u.standing.unfollowed...)
	u.standing.mu.Unlock()
	return u.withFollowers(own, func(f *follower, all []sluice.Condition) []sluice.Condition { return f.unsafe.addTo(all) })
}

// conditions are what holders are told of: what keeps upkeep from its work, which engines do not answer, and where runs go
// nowhere.
func (u *Upkeep) conditions() []sluice.Condition {
	return u.withFollowers(u.ownConditions(), func(f *follower, all []sluice.Condition) []sluice.Condition {
		return f.unpolled.addTo(f.away.addTo(all))
	})
}

func (u *Upkeep) withFollowers(all []sluice.Condition, add func(*follower, []sluice.Condition) []sluice.Condition) []sluice.Condition {
	u.runs.mu.Lock()
	defer u.runs.mu.Unlock()
	for _, f := range u.runs.queues {
		all = add(f, all)
	}
	sluice.SortConditions(all)
	return all
}

// isEngineFault reports whether an error says that an engine cannot be asked now.
func isEngineFault(err error) bool {
	return errors.Is(err, sluice.ErrEngineUnavailable) || errors.Is(err, sluice.ErrEngineTarget)
}
