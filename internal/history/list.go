package history

import (
	"slices"

	"github.com/sluice-queue/sluice"
)

// ListLimit is how many unfinished and how many finished jobs a bounded page looks at.
const ListLimit = 20_000

// OfDead reports whether the finished jobs that a filter chooses are the dead letters of a queue: an index leads to them.
func OfDead(f sluice.JobFilter) bool {
	_, finished := sluice.SplitStates(f.States)
	return f.Queue != "" && slices.Equal(finished, []sluice.State{sluice.StateDead})
}

// Bounded reports whether a page of jobs looks at no more than ListLimit: no index leads to the jobs with some labels.
func Bounded(f sluice.JobFilter) bool {
	return len(f.Labels) > 0 && f.Key == "" && f.Tenant == "" && !OfDead(f)
}

// Way is what leads to the jobs that a page lists.
type Way int

// The ways: a key or a tenant leads to its jobs, whatever has become of them; the others lead to those that are unfinished, to
// the finished ones, and to the dead letters of a queue.
const (
	ByKey Way = iota
	ByTenant
	Unfinished
	Finished
	Dead
)

// Part is the jobs of a page to which one way leads, in any of some states.
type Part struct {
	Way    Way
	States []sluice.State
}

// PartsOf are the parts of a page that have a state.
func PartsOf(f sluice.JobFilter) []Part {
	unfinished, finished := sluice.SplitStates(f.States)
	dead := OfDead(f)
	parts := []Part{{Unfinished, unfinished}, {Finished, finished}}
	switch {
	case f.Key != "":
		parts = []Part{{ByKey, slices.Concat(unfinished, finished)}}
	case f.Tenant != "" && !dead:
		parts = []Part{{ByTenant, slices.Concat(unfinished, finished)}}
	case dead:
		parts[1].Way = Dead
	}
	return slices.DeleteFunc(parts, func(p Part) bool { return len(p.States) == 0 })
}
