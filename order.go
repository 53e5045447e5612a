package sluice

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// MaxAfter bounds how many jobs one may be enqueued after.
const MaxAfter = 100

// AfterFailure says what becomes of a job when one that it is to run after dies or is cancelled.
type AfterFailure string

// What may become of it.
const (
	// FailureCancels, the default: it is cancelled, and those that are to run after it have a failure
	// of their own.
	FailureCancels AfterFailure = "cancel"
	// FailureRuns: the failed one counts as done.
	FailureRuns AfterFailure = "run"
	// FailureWaits: it waits until a person has requeued the failed one, and that has completed. If the
	// failed one is deleted from the history, it is cancelled.
	FailureWaits AfterFailure = "wait"
)

// checkOrder checks what a producer says of a job's place among others.
func (j NewJob) checkOrder() error {
	if err := checkName("order_key", j.OrderKey, MaxKeyBytes); err != nil {
		return err
	}
	switch j.AfterFailure {
	case "", FailureCancels, FailureRuns, FailureWaits:
	default:
		return invalid("after_failure", fmt.Sprintf("%.40q is none of %s, %s, %s", j.AfterFailure, FailureCancels, FailureRuns, FailureWaits))
	}
	switch {
	case len(j.After) > MaxAfter:
		return invalid("after", fmt.Sprintf("%d jobs are more than %d; let one job run after a part of them, and this one after that", len(j.After), MaxAfter))
	case len(j.After) == 0 && j.AfterFailure != "":
		return invalid("after_failure", "it says what becomes of a job that runs after others, and there are none")
	case slices.Contains(j.After, ID{}):
		return invalid("after", "one of the ids is empty")
	case !j.ID.IsZero() && slices.Contains(j.After, j.ID):
		return invalid("after", "the job cannot run after itself")
	}
	return nil
}

// sortedIDs gives each id once, in the order in which every store looks at them.
func sortedIDs(ids []ID) []ID {
	out := slices.Clone(ids)
	slices.SortFunc(out, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(out)
}

// batchOrder sorts a batch so that each job comes behind those of the batch that it waits for: those
// that it is to run after, and the one before it with the same order key. Of the same key, the first
// stays the first.
//
// Cycles can only arise within a batch. A job that is stored waits only for jobs that were stored before
// it or together with it; a requeued one takes its old place in its order again, or waits for one that
// waits for nobody. So the order in which jobs were stored is one in which they can all run.
type batchOrder struct {
	jobs   []Insert
	waits  [][]int // by job: those that must come before it
	marks  []mark
	path   []int // from a job to one that it waits for, and so on
	sorted []int
	failed map[int]error
}

// mark says how far a job of a batch was looked at.
type mark int

const (
	unseen mark = iota
	onPath
	seen
)

// sortBatch gives the order in which a batch can be stored, and what is wrong with the jobs that wait
// for each other.
func sortBatch(jobs []Insert) (sorted []int, failed map[int]error) {
	b := &batchOrder{jobs: jobs, waits: waitsOf(jobs), marks: make([]mark, len(jobs)), failed: make(map[int]error)}
	for i := range jobs {
		b.visit(i)
	}
	return slices.DeleteFunc(b.sorted, func(i int) bool { return b.failed[i] != nil }), b.failed
}

// waitsOf finds what each job of a batch waits for within the batch.
func waitsOf(jobs []Insert) [][]int {
	type lane struct{ queue, kind, key string }
	waits, byID, last := make([][]int, len(jobs)), make(map[ID]int, len(jobs)), make(map[lane]int)
	for i, j := range slices.Backward(jobs) {
		byID[j.ID] = i // of jobs with the same id, the first counts
	}
	for i, j := range jobs {
		for _, place := range []lane{{j.Queue, "order", j.OrderKey}, {j.Queue, "key", j.Key}} {
			if place.key == "" {
				continue
			}
			if before, known := last[place]; known {
				waits[i] = append(waits[i], before)
			}
			last[place] = i
		}
		for _, id := range j.After {
			if before, inBatch := byID[id]; inBatch {
				waits[i] = append(waits[i], before)
			}
		}
	}
	return waits
}

func (b *batchOrder) visit(i int) {
	switch b.marks[i] {
	case seen:
		return
	case onPath:
		b.refuse(b.path[slices.Index(b.path, i):])
		return
	}
	b.marks[i] = onPath
	b.path = append(b.path, i)
	for _, before := range b.waits[i] {
		b.visit(before)
	}
	b.path = b.path[:len(b.path)-1]
	b.marks[i] = seen
	b.sorted = append(b.sorted, i)
}

// refuse names a cycle to each of its jobs.
func (b *batchOrder) refuse(cycle []int) {
	const shown = 5
	var text strings.Builder
	for k, i := range cycle {
		if k == shown {
			text.WriteString("… waits for ")
			break
		}
		text.WriteString(b.jobs[i].ID.String() + " waits for ")
	}
	text.WriteString(b.jobs[cycle[0]].ID.String())
	for _, i := range cycle {
		b.failed[i] = invalid("after", "the jobs wait for each other, by after or by their order: "+text.String())
	}
}
