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
