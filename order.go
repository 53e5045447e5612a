package sluice

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice/internal/graph"
)

// MaxAfter is the most jobs that a job can run after. MaxAfterFailures is the most of them with a failure rule of their own.
const (
	MaxAfter         = 10_000
	MaxAfterFailures = 100
)

// AfterFailure says how a job goes on if a job that it runs after dies or is cancelled.
type AfterFailure string

// The rules after a failure.
const (
	// FailureCancels cancels the job. The jobs that run after it follow their own rule. It is the default.
	FailureCancels AfterFailure = "cancel"
	// FailureRuns lets the job run as if the failed job had completed.
	FailureRuns AfterFailure = "run"
	// FailureWaits makes the job wait until somebody requeues the failed job and that job completes. If the failed
	// job is deleted, the waiting job is cancelled.
	FailureWaits AfterFailure = "wait"
)

// checkOrder checks the order key, After and AfterFailure.
func (j NewJob) checkOrder() error {
	if err := checkName("order_key", j.OrderKey, MaxKeyBytes); err != nil {
		return err
	}
	if err := checkAfterFailure(j.AfterFailure); err != nil {
		return err
	}
	if len(j.AfterFailures) > MaxAfterFailures {
		return invalid("after_failures", fmt.Sprintf("%d rules must be at most %d; after_failure is the rule of all others", len(j.AfterFailures), MaxAfterFailures))
	}
	for id, rule := range j.AfterFailures {
		if !slices.Contains(j.After, id) {
			return invalid("after_failures", fmt.Sprintf("the job does not run after %s", id))
		}
		if err := checkAfterFailure(rule); err != nil {
			return err
		}
	}
	switch {
	case len(j.After) > MaxAfter:
		return invalid("after", fmt.Sprintf("%d jobs must be at most %d; let one job run after some of them, and this job after that one", len(j.After), MaxAfter))
	case len(j.After) == 0 && j.AfterFailure != "":
		return invalid("after_failure", "the job runs after no other; name one in after")
	case slices.Contains(j.After, ID{}):
		return invalid("after", "one of the ids is empty")
	case !j.ID.IsZero() && slices.Contains(j.After, j.ID):
		return invalid("after", "the job cannot run after itself")
	}
	return nil
}

func checkAfterFailure(rule AfterFailure) error {
	switch rule {
	case "", FailureCancels, FailureRuns, FailureWaits:
		return nil
	}
	return invalid("after_failure", fmt.Sprintf("%.40q must be one of %s, %s, %s", rule, FailureCancels, FailureRuns, FailureWaits))
}

// sortedIDs returns each ID once, in the order in which every store looks at IDs.
func sortedIDs(ids []ID) []ID {
	out := slices.Clone(ids)
	slices.SortFunc(out, func(a, b ID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(out)
}

// sortBatch returns the order in which to store a batch, each job behind the jobs of the batch that it waits for, and the
// errors of jobs that wait for each other. A job waits for the jobs in its After, and for the previous job with the same
// order key or key.
//
// Cycles arise only within a batch. A stored job waits only for jobs that were stored before it or with it. A
// requeued job takes its old place in its order, or waits for a job that waits for nobody. So the stored order is
// an order in which all jobs can run.
func sortBatch(jobs []Insert) (sorted []int, failed map[int]error) {
	sorted, cycles := graph.Sort(waitsOf(jobs))
	failed = make(map[int]error)
	for _, cycle := range cycles {
		err := inCycle(jobs, cycle)
		for _, i := range cycle {
			failed[i] = err
		}
	}
	return sorted, failed
}

// waitsOf returns which jobs of a batch each job waits for.
func waitsOf(jobs []Insert) [][]int {
	type sequence struct{ queue, kind, key string }
	waits, byID, last := make([][]int, len(jobs)), make(map[ID]int, len(jobs)), make(map[sequence]int)
	for i, j := range slices.Backward(jobs) {
		byID[j.ID] = i // of jobs with the same ID, the first counts
	}
	for i, j := range jobs {
		for _, place := range []sequence{{j.Queue, "order", j.OrderKey}, {j.Queue, "key", j.Key}} {
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

// inCycle returns the error of the jobs of a cycle. It names the cycle.
func inCycle(jobs []Insert, cycle []int) error {
	const shown = 5
	var text strings.Builder
	for k, i := range cycle {
		if k == shown {
			text.WriteString("… waits for ")
			break
		}
		text.WriteString(jobs[i].ID.String() + " waits for ")
	}
	return invalid("after", "the jobs wait for each other, by after or by their order: "+text.String()+jobs[cycle[0]].ID.String())
}
