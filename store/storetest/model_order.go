package storetest

import (
	"bytes"
	"slices"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
)

// drawOrder draws a job's place among others.
func (m *machine) drawOrder(t *rapid.T, o *sluice.EnqueueOptions) {
	o.OrderKey = rapid.SampledFrom([]string{"", "", "x", "y"}).Draw(t, "order key")
	if len(m.order) == 0 {
		return
	}
	for range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "how many it runs after") {
		o.After = append(o.After, m.order[len(m.order)-1-rapid.IntRange(0, min(5, len(m.order)-1)).Draw(t, "runs after, counted from the last")])
	}
	if len(o.After) > 0 {
		rules := []sluice.AfterFailure{sluice.FailureCancels, sluice.FailureRuns, sluice.FailureWaits}
		o.AfterFailure = rapid.SampledFrom(rules).Draw(t, "after failure")
		if rapid.IntRange(0, 2).Draw(t, "a rule of its own") == 0 {
			o.AfterFailures = map[sluice.ID]sluice.AfterFailure{o.After[0]: rapid.SampledFrom(rules).Draw(t, "its rule")}
		}
	}
}

// look works out what a waiting job waits for now; what it waits for already it goes on waiting for.
func (m *machine) look(id sluice.ID) {
	job := m.jobs[id]
	failed := false
	job.rest = slices.DeleteFunc(job.rest, func(other sluice.ID) bool {
		state := m.jobs[other].state
		rule := job.afterFailure
		if own := job.afterFailures[other]; own != "" {
			rule = own
		}
		passes := state == sluice.StateCompleted || state.Finished() && rule == sluice.FailureRuns
		failed = failed || state.Finished() && !passes && rule == sluice.FailureCancels
		return passes
	})
	if failed {
		m.end(id, sluice.StateCancelled)
		return
	}
	if job.held || m.waitsForRun(id) {
		job.blockedBy = id
		return
	}
	if job.blockedBy != id && m.lives(job.blockedBy) && !m.overtaken(job, m.jobs[job.blockedBy]) {
		return
	}
	slices.SortFunc(job.rest, func(a, b sluice.ID) int { return bytes.Compare(a[:], b[:]) })
	job.blockedBy = sluice.ID{}
	if len(job.rest) > 0 { // the last: the end of any before it changes nothing
		job.blockedBy = job.rest[len(job.rest)-1]
	}
	if before := m.before(id, job); !before.IsZero() {
		job.blockedBy = before
	}
}

// before is the job that another waits for in its order.
func (m *machine) before(id sluice.ID, job *modelJob) sluice.ID {
	var before, open sluice.ID
	for _, other := range m.order {
		o := m.jobs[other]
		switch {
		case other == id || job.orderKey == "" || o.orderKey != job.orderKey || o.state.Finished():
		case o.seq < job.seq:
			before = other
		case o.blockedBy.IsZero():
			open = other
		}
	}
	if before.IsZero() {
		return open
	}
	return before
}

// overtaken reports whether a job need not wait any more for a later one of its order, which was let go once and now waits itself.
func (m *machine) overtaken(job, later *modelJob) bool {
	return job.orderKey != "" && later.orderKey == job.orderKey && later.seq > job.seq && !later.blockedBy.IsZero()
}

func (m *machine) lives(id sluice.ID) bool {
	job := m.jobs[id]
	return job != nil && !job.state.Finished()
}

// letGo looks at the jobs that wait for one that has ended.
func (m *machine) letGo(ended sluice.ID) {
	for _, id := range m.order {
		job := m.jobs[id]
		if job.state == sluice.StateQueued && !job.blockedBy.IsZero() && (job.blockedBy == ended || slices.Contains(job.rest, ended)) {
			m.look(id)
		}
	}
}

// keyHolder is the unfinished job that holds a key.
func (m *machine) keyHolder(key string) (sluice.ID, *modelJob) {
	for _, id := range m.order {
		if j := m.jobs[id]; key != "" && j.key == key && j.holdsKey && !j.state.Finished() {
			return id, j
		}
	}
	return sluice.ID{}, nil
}

// refusesByKey reports whether a job of another tenant holds the key of a job that would change it.
func (m *machine) refusesByKey(o sluice.EnqueueOptions) bool {
	_, twin := m.keyHolder(o.Key)
	return twin != nil && twin.tenant != o.Tenant && o.OnDuplicate != sluice.Keep
}
