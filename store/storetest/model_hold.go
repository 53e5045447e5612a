package storetest

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/hold"
)

// waitsFor is the job that another waits for, or would wait for if nobody held it.
func (j *modelJob) waitsFor() sluice.ID {
	if j.held {
		return j.behind
	}
	return j.blockedBy
}

func (j *modelJob) hold(id sluice.ID) {
	if j.behind = j.blockedBy; j.behind == id {
		j.behind = sluice.ID{}
	}
	j.held, j.blockedBy = true, id
}

// holdNew holds a job from its enqueue on. Holder is the job that holds its key, or none.
func (m *machine) holdNew(id, holder sluice.ID) {
	job := m.jobs[id]
	job.atFirst, job.blockedBy = job.blockedBy, holder
	job.hold(id)
}

func (m *machine) hold(t *rapid.T) {
	id, job := m.pickJob(t)
	m.tick()
	errs, err := hold.Given(m.store(t)).Hold(m.ctx, []sluice.ID{id}, person("model"))
	m.must(err)
	if job.state != sluice.StateQueued || job.held {
		m.agreeOn("hold", errs[0], sluice.ErrNotAllowed)
		return
	}
	m.agreeOn("hold", errs[0], nil)
	job.hold(id)
	m.letGo(id) // those before it in its order that waited for it
}

func (m *machine) release(t *rapid.T) {
	id, job := m.pickJob(t)
	m.tick()
	errs, err := hold.Given(m.store(t)).Release(m.ctx, []sluice.ID{id}, person("model"))
	m.must(err)
	if !job.held {
		m.agreeOn("release", errs[0], sluice.ErrNotAllowed)
		return
	}
	m.agreeOn("release", errs[0], nil)
	job.held, job.blockedBy = false, job.behind
	m.look(id)
	m.waitAsAtFirst(id, job)
}

// waitAsAtFirst lets a job that was held from its enqueue on wait for the job that it would have waited for from then on, if
// it must wait for that one still: a store may note it, or look anew.
func (m *machine) waitAsAtFirst(id sluice.ID, job *modelJob) {
	first := m.jobs[job.atFirst]
	if job.state != sluice.StateQueued || first == nil || first.state.Finished() {
		return
	}
	earlier := job.orderKey != "" && first.orderKey == job.orderKey && first.seq < job.seq
	got, err := m.bench.Store.Job(m.ctx, id)
	if m.must(err); got.BlockedBy == job.atFirst && (earlier || slices.Contains(job.rest, job.atFirst)) {
		job.blockedBy = job.atFirst
	}
}

// agreeOnHolds makes sure that the store lists the holds of the model and no others.
func (m *machine) agreeOnHolds() {
	found, err := hold.List(m.ctx, m.bench.Store, hold.Filter{Queue: m.queue, Limit: 10_000})
	m.must(err)
	count := 0
	for _, job := range m.jobs {
		if job.held {
			count++
		}
	}
	for _, held := range found {
		if job := m.jobs[held.JobID]; job == nil || !job.held {
			m.Fatalf("the store lists a hold of job %s, which the model does not hold", held.JobID)
		}
	}
	if len(found) != count {
		m.Fatalf("the store lists %d holds, the model has %d", len(found), count)
	}
}
