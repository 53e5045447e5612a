package history

import (
	"slices"
	"strings"

	"github.com/sluice-queue/sluice"
)

// ListLimit is how many unfinished and how many finished jobs a bounded page reads.
const ListLimit = 20_000

// OfDead reports whether the finished jobs that a filter chooses are the dead letters of a queue,
// which have an index.
func OfDead(f sluice.JobFilter) bool {
	_, finished := sluice.SplitStates(f.States)
	return f.Queue != "" && slices.Equal(finished, []sluice.State{sluice.StateDead})
}

// backwards turns the order of a statement round.
var backwards = strings.NewReplacer("seq desc", "seq", ".id desc", ".id", ".key desc", ".key", ".tenant desc", ".tenant", "max(seq)", "min(seq)")

// InOrder returns the statement for the order of a filter. The file of each has the newest job first; for the oldest first
// it walks along the same index the other way.
func InOrder(f sluice.JobFilter, statement string) string {
	if f.OldestFirst {
		return backwards.Replace(statement)
	}
	return statement
}

// Bounded reports whether a page of jobs reads at most ListLimit jobs, because no index finds jobs
// by labels. A page of the jobs of a batch is always bounded, in another way.
func Bounded(f sluice.JobFilter) bool {
	return f.Batch.IsZero() && len(f.Labels) > 0 && f.Key == "" && f.Tenant == "" && !OfDead(f)
}

// Way is an index that finds the jobs of a page.
type Way int

// The ways. ByKey, ByTenant and ByBatch find all jobs of a key, a tenant or a batch. The others find
// unfinished jobs, finished jobs, and the dead letters of a queue.
const (
	ByKey Way = iota
	ByTenant
	ByBatch
	Unfinished
	Finished
	Dead
)

// Part is the jobs of a page that one way finds, in some states.
type Part struct {
	Way    Way
	States []sluice.State
}

// PartsOf returns the parts of a page that have states.
func PartsOf(f sluice.JobFilter) []Part {
	unfinished, finished := sluice.SplitStates(f.States)
	dead := OfDead(f)
	parts := []Part{{Unfinished, unfinished}, {Finished, finished}}
	switch {
	case !f.Batch.IsZero():
		parts = []Part{{ByBatch, slices.Concat(unfinished, finished)}}
	case f.Key != "":
		parts = []Part{{ByKey, slices.Concat(unfinished, finished)}}
	case f.Tenant != "" && !dead:
		parts = []Part{{ByTenant, slices.Concat(unfinished, finished)}}
	case dead:
		parts[1].Way = Dead
	}
	return slices.DeleteFunc(parts, func(p Part) bool { return len(p.States) == 0 })
}
