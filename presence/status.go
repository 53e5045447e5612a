package presence

import "time"

// Status is the state of an upkeep or a dispatcher of this process, from memory. Other processes see it as a [Holder].
type Status struct {
	// Holder is the id of the process.
	Holder string
	// Heartbeat is when the store last accepted a heartbeat, by this process's clock. Zero: never. Heartbeats are 10 s apart.
	Heartbeat time.Time
	// Leads says that this upkeep works and does not stand by.
	Leads bool
	// Tasks are the tasks that the process leads: TaskUpkeep, and FollowTask of engines.
	Tasks []string
	// Conditions keep the process from parts of its work.
	Conditions []Condition
}

// Summary returns the conditions in one line. Empty: there are none.
func (s Status) Summary() string { return Summary(s.Conditions) }
