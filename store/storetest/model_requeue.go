package storetest

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
)

func (m *machine) requeue(t *rapid.T) {
	id, job := m.pickJob(t)
	act := person("model")
	act.BesideOpenRun = rapid.SampledFrom([]bool{false, false, true}).Draw(t, "beside an open run")
	m.tick()
	errs, err := m.store(t).Requeue(m.ctx, []sluice.ID{id}, act)
	m.must(err)
	if !sluice.MoveOf(sluice.EventRequeue).Allows(job.state) {
		m.agreeOn("requeue", errs[0], sluice.ErrNotAllowed)
		return
	}
	if holder, other := m.keyHolder(job.key); other != nil && holder != id {
		m.agreeOn("requeue", errs[0], sluice.ErrDuplicate)
		return
	}
	m.agreeOn("requeue", errs[0], nil)
	m.letBeside(id, act)
	uncertain := job.state == sluice.StateUncertain
	if job.before = nil; !uncertain {
		before := *job
		job.before = &before
	}
	job.state, job.due, job.generation = sluice.StateQueued, m.now, job.generation+1
	job.attempts, job.releases, job.recoveries, job.expires = 0, 0, 0, 0
	job.token, job.holdsKey = sluice.Token{}, job.key != ""
	job.forgetRun()
	if !uncertain { // an uncertain one was let go before
		job.rest = slices.DeleteFunc(slices.Clone(job.after), func(other sluice.ID) bool { return !m.lives(other) })
		m.look(id)
	}
}

// undo takes a requeue back.
func (m *machine) undo(t *rapid.T) {
	id, job := m.pickJob(t)
	m.tick()
	errs, err := m.store(t).Requeue(m.ctx, []sluice.ID{id}, undo())
	m.must(err)
	if job.state != sluice.StateQueued || job.before == nil || job.attempts+job.releases+job.recoveries > 0 {
		m.agreeOn("undo", errs[0], sluice.ErrNotAllowed)
		return
	}
	m.agreeOn("undo", errs[0], nil)
	before := job.before
	m.end(id, before.state)
	job.due, job.attempts, job.releases, job.recoveries, job.ref = before.due, before.attempts, before.releases, before.recoveries, before.ref
}

func (m *machine) expire(t *rapid.T) {
	m.tick()
	_, err := m.store(t).Expire(m.ctx, 10_000, "upkeep") // of all queues: the count tells nothing here
	m.must(err)
	for id, j := range m.jobs {
		if j.state == sluice.StateQueued && j.expires > 0 && j.expires <= m.now {
			m.end(id, sluice.StateCancelled)
		}
	}
}
