package upkeep

import (
	"errors"
	"sync"

	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/presence"
)

// noted is a condition that may exist. In the zero value, it does not.
type noted struct {
	mu  sync.Mutex
	is  bool
	the presence.Condition
}

// set stores a condition, and reports whether its kind or text is new. A lasting condition keeps its start
// time.
func (n *noted) set(c presence.Condition) (news bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	news = !n.is || n.the.Kind != c.Kind || n.the.Text != c.Text
	if n.is && n.the.Kind == c.Kind {
		c.Since = n.the.Since
	}
	n.is, n.the = true, c
	return news
}

// clear notes that the condition has ended.
func (n *noted) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.is = false
}

// addTo appends the condition if it exists.
func (n *noted) addTo(all []presence.Condition) []presence.Condition {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.is {
		all = append(all, n.the)
	}
	return all
}

// ownConditions lists the problems that keep upkeep from following runs, or from following them safely.
func (u *Upkeep) ownConditions() []presence.Condition {
	u.standing.mu.Lock()
	own := append([]presence.Condition(nil), u.standing.unfollowed...)
	u.standing.mu.Unlock()
	return u.withFollowers(own, func(f *follower, all []presence.Condition) []presence.Condition { return f.unsafe.addTo(all) })
}

// conditions lists the problems shown in the holder's record. They are the problems that keep upkeep from its
// work, engines that do not answer, and runs that no worker polls.
func (u *Upkeep) conditions() []presence.Condition {
	return u.withFollowers(u.ownConditions(), func(f *follower, all []presence.Condition) []presence.Condition {
		return f.unpolled.addTo(f.away.addTo(all))
	})
}

func (u *Upkeep) withFollowers(all []presence.Condition, add func(*follower, []presence.Condition) []presence.Condition) []presence.Condition {
	u.runs.mu.Lock()
	defer u.runs.mu.Unlock()
	for _, f := range u.runs.queues {
		all = add(f, all)
	}
	presence.SortConditions(all)
	return all
}

// isEngineFault reports whether an error means that an engine cannot be asked now.
func isEngineFault(err error) bool {
	return errors.Is(err, engine.ErrUnavailable) || errors.Is(err, engine.ErrTarget)
}
