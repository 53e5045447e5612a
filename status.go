package sluice

import "time"

// HolderStatus is how an upkeep or a dispatcher of this very process does, as it knows by itself: asking costs nothing.
// Others see the same in its Holder, in the store.
type HolderStatus struct {
	// Holder is its id.
	Holder string
	// Beaten is when the store last took its heartbeat, by this process's clock; zero: it never did. One comes every
	// five seconds.
	Beaten time.Time
	// Leads says that it is the upkeep that does the work, and does not stand by.
	Leads bool
	// Tasks are those that it leads: TaskUpkeep, and FollowTask of engines.
	Tasks []string
	// Conditions are what keeps it from parts of its work.
	Conditions []Condition
}

// Trouble says in one line for people what keeps it from its work; empty: nothing does.
func (s HolderStatus) Trouble() string { return Trouble(s.Conditions) }
